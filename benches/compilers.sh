#!/usr/bin/env bash
# What AMD's compiler in Mesa (RADV, ACO) makes of the kernels, on a machine without a GPU: registers, spills, scratch,
# workgroup memory, waves, the main loop and its own estimates of time. Fails if a kernel spills registers or needs
# scratch memory, if a main loop waits for its loads one by one, or if a hot kernel has fewer waves than it must.
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
named() { case $1 in /*) echo "$1" ;; *) echo "$from/$1" ;; esac; }

usage() {
    cat <<'TEXT'
usage: benches/compilers.sh [options]

  --families A,B   families of GPUs, by Mesa's names [those of these that the installed Mesa knows: polaris10 vega10
                   mi200 navi10 navi21 gfx1100 navi31 gfx1150 gfx1201]
  --kernels A,B    these kernels alone, as `weight_gradient`
  --spirv DIR      takes the SPIR-V files there [writes them by a test of the library, in a folder that is deleted]
  --keep DIR       writes the SPIR-V files there and keeps them
  --icd FILE       the driver [radeon_icd*.json of the installed Mesa]
  --include DIR    where vulkan/vulkan.h is, if it is not among the system's headers
  --status         says what is missing, and nothing else; fails if something is

Kernels are those of lens1, lens2, cross4 and small, in every shape that the tuner has to choose from: file names are
KERNEL.THREADS.ROWS.QUADS. Needs gcc, the Vulkan loader, its headers (Debian: libvulkan1, libvulkan-dev) and Mesa's
RADV (mesa-vulkan-drivers).
TEXT
}

families='' kernels='' spirv='' keep='' icd='' include='' status=''
while [ $# -gt 0 ]; do
    option=$1
    case $option in
        -h | --help) usage; exit 0 ;;
        --status) status=1; shift; continue ;;
        --families | --kernels | --spirv | --keep | --icd | --include) ;;
        *) echo "compilers.sh: there is no option $option; --help lists them" >&2; exit 2 ;;
    esac
    [ $# -ge 2 ] || { echo "compilers.sh: $option needs a value; --help lists the options" >&2; exit 2; }
    case $option in
        --families) families=$2 ;;
        --kernels) kernels=$2 ;;
        --spirv) spirv=$(named "$2") ;;
        --keep) keep=$(named "$2") ;;
        --icd) icd=$(named "$2") ;;
        --include) include=$(named "$2") ;;
    esac
    shift 2
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing() { echo "compilers.sh: $1" >&2; exit 3; }

if [ -z "$icd" ]; then
    for file in {/usr/share,/usr/local/share,/etc}/vulkan/icd.d/radeon_icd*.json; do
        [ -e "$file" ] && icd=$file && break
    done
fi
[ -n "$icd" ] || missing "there is no RADV: install Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers), or name an ICD with --icd"
command -v gcc >/dev/null || missing "there is no gcc: install it"
echo 'int main(void) { return 0; }' >"$work/loader.c"
gcc "$work/loader.c" -o "$work/loader" -l:libvulkan.so.1 2>/dev/null ||
    missing "there is no Vulkan loader: install it (Debian: libvulkan1)"
echo '#include <vulkan/vulkan.h>' >"$work/headers.c"
gcc ${include:+"-I$include"} -fsyntax-only "$work/headers.c" 2>/dev/null ||
    missing "there are no Vulkan headers: install them (Debian: libvulkan-dev), or name their folder with --include"
gcc -std=c11 -O1 -Wall -Wextra ${include:+"-I$include"} benches/compilers.c -o "$work/compilers" -l:libvulkan.so.1

# RADV without hardware, as that family.
compile() {
    local family=$1
    shift
    env -u VK_DRIVER_FILES -u VK_ADD_DRIVER_FILES VK_ICD_FILENAMES="$icd" RADV_FORCE_FAMILY="$family" \
        MESA_SHADER_CACHE_DISABLE=true NODEVICE_SELECT=1 "$work/compilers" "$@"
}

known=()
for family in ${families//,/ }; do
    compile "$family" >/dev/null 2>"$work/error" ||
        missing "the installed Mesa cannot do as if it were $family: $(head -n 1 "$work/error")"
    known+=("$family")
done
if [ -z "$families" ]; then
    for family in polaris10 vega10 mi200 navi10 navi21 gfx1100 navi31 gfx1150 gfx1201; do
        if compile "$family" >/dev/null 2>&1; then known+=("$family"); fi
    done
    [ ${#known[@]} -gt 0 ] || missing "RADV ($icd) knows none of the families"
fi
[ -z "$status" ] || exit 0

if [ -z "$spirv" ]; then
    spirv=${keep:-$work/spirv}
    HINTFLOW_SPIRV=$spirv cargo test --quiet --locked --lib -- --ignored --exact \
        engine::gpu::tests::compilers::spirv_is_written >&2
fi
files=()
for file in "$spirv"/*.spv; do
    kernel=$(basename "$file")
    case ,${kernels:-${kernel%%.*}}, in *",${kernel%%.*},"*) files+=("$file") ;; esac
done
[ -e "${files[0]-}" ] || { echo "compilers.sh: there are no such kernels in $spirv" >&2; exit 2; }

failed=0
for family in "${known[@]}"; do
    mkdir "$work/$family"
    compile "$family" --assembly "$work/$family" "${files[@]}" >"$work/$family.tsv"
    awk -f benches/loops.awk "$work/$family"/*.s >"$work/$family.loops"
    # A table in Markdown; ends with 1 if something is not as it must be.
    awk -F'\t' -v family="$family" -v cases="$spirv/cases.tsv" -v loops="$work/$family.loops" \
        -f benches/compilers.awk "$work/$family.tsv" || failed=1
done
exit $failed
