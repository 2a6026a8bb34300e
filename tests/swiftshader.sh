#!/bin/sh
# The GPU tests on SwiftShader, a second software implementation of Vulkan, whose compiler has nothing in common with
# Mesa's: fixtures of all kinds, the contract, the library's.
set -eu
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: tests/swiftshader.sh [options]

  --icd FILE      description of the driver, vk_swiftshader_icd.json [that of an installed Chromium; else Debian's package
                  chromium-common is fetched and unpacked below target/, and not installed]
  --columns A,B   numbers of columns of the contract's models [1,2,5]; all: from 1 to 33
  --tests A,B     fixtures, contract, library; few: a fixture of each kind, for CI [fixtures,contract]

HINTFLOW_TEST_FLAGS in the environment are flags of cargo test, --features mpi for example: those that tests were built with.
TEXT
}

icd='' columns=1,2,5 tests=fixtures,contract
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --icd | --columns | --tests) ;;
        *) echo "swiftshader.sh: there is no option $1; --help lists them" >&2; exit 2 ;;
    esac
    [ $# -ge 2 ] || { echo "swiftshader.sh: $1 needs a value; --help lists the options" >&2; exit 2; }
    case $1 in
        --icd) icd=$2 ;;
        --columns) columns=$2 ;;
        --tests) tests=$2 ;;
    esac
    shift 2
done
for name in $(echo "$tests" | tr ',' ' '); do
    case $name in
        few | fixtures | contract | library) ;;
        *) echo "swiftshader.sh: --tests takes few, fixtures, contract and library, not $name" >&2; exit 2 ;;
    esac
done

folder=${CARGO_TARGET_DIR:-target}/swiftshader
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
name=vk_swiftshader_icd.json
for place in /usr/lib/chromium /usr/lib64/chromium-browser /opt/google/chrome "$folder/usr/lib/chromium"; do
    [ -z "$icd" ] && [ -e "$place/$name" ] && icd=$place/$name
done
if [ -z "$icd" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
        echo "swiftshader.sh: there is no SwiftShader: install Chromium or Chrome, or name $name with --icd" >&2
        exit 3
    }
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -q chromium-common && dpkg-deb -x chromium-common_*.deb . && rm chromium-common_*.deb) || {
        echo "swiftshader.sh: Debian's chromium-common cannot be had; after apt-get update it may be, or name $name with --icd" >&2
        exit 3
    }
    icd=$folder/usr/lib/chromium/$name
fi
case $icd in /*) ;; *) icd=$PWD/$icd ;; esac
[ -e "$icd" ] || { echo "swiftshader.sh: there is no file $icd" >&2; exit 2; }

unset VK_DRIVER_FILES VK_ADD_DRIVER_FILES
export VK_ICD_FILENAMES="$icd" NODEVICE_SELECT=1
# Tests fail if no adapter has that name.
export HINTFLOW_TEST_DEVICE=SwiftShader
[ "$columns" = all ] || export HINTFLOW_TEST_COLUMNS="$columns"
# Each test in a process of its own: SwiftShader gives back what it took for kernels when that ends, not before. The
# fixture of 100 columns would take more than 24 GB, and is left out.
one_by_one() { # --lib or --test it, what names begin with
    cargo test --quiet --locked ${HINTFLOW_TEST_FLAGS:-} $1 -- "$2" --skip cli:: --skip n100 --list --format terse 2>/dev/null |
        sed -n 's/: test$//p' >"$folder.tests"
    [ -s "$folder.tests" ] || { echo "swiftshader.sh: no tests: $2" >&2; exit 1; }
    while IFS=' ' read -r test; do
        begun=$(date +%s)
        if cargo test --quiet --locked ${HINTFLOW_TEST_FLAGS:-} $1 -- --exact "$test" >"$folder.log" 2>&1 </dev/null; then
            echo "ok $test, $(($(date +%s) - begun)) s"
        else
            cat "$folder.log" >&2
            echo "FAILED $test"
            failed=yes
        fi
    done <"$folder.tests"
}

failed=''
mkdir -p "$(dirname "$folder")"
case ,$tests, in *,library,*) one_by_one --lib engine::gpu:: ;; esac
case ,$tests, in
    *,few,*)
        for name in cinn_n5_c3_spline flow_n3_exp hint_n5_c2_spline_output; do
            one_by_one '--test it' "fixtures::gpu::$name"
        done
        ;;
esac
for name in fixtures contract; do
    case ,$tests, in *",$name,"*) one_by_one '--test it' "$name::gpu::" ;; esac
done
rm -f "$folder.tests" "$folder.log"
[ -z "$failed" ]
