#!/usr/bin/env bash
# Everything there is to learn from a machine with a GPU, in under six minutes: what the adapter can do, the engine's tests
# on it, times of steps, samples and kernels, and plain PyTorch beside them. Needs nothing but what was built before.
set -uo pipefail
# Files that the caller names are named from where the caller is; all else happens in the repository.
from=$PWD
cd "$(dirname "$0")/.." || exit 1
named() { case $1 in /*) echo "$1" ;; *) echo "$from/$1" ;; esac; }

usage() {
    cat <<'TEXT'
usage: benches/gpu.sh [options]

  --hintflow FILE      the program [target/release/hintflow]
  --tests FILE         a test binary, whose name `cargo test --no-run` prints; repeat it for those of src/lib.rs
                       (hintflow-...) and tests/it (it-...)
  --torch-step FILE    a script that times the same cases in PyTorch, see benches/compare.sh
  --python FILE        the Python that has PyTorch [python3]
  --torch-device D     [cuda]
  --device D           number or name of an adapter [the real GPU that `auto` takes]
  --cases A,B          to compare [lens1,lens1d0,lens2,lens2d0,cross4,cross4d0,small]
  --kernels A,B        cases whose kernels are timed [lens2,cross4]
  --minutes N          all in all [5.5]
  --out DIR            keeps the results there
  --quick              the smallest cases and times, to try the script on a software adapter

Each part has a time of its own; one that fails or takes too long does not keep the others from running. The last thing
printed is a table in Markdown.
TEXT
}

hintflow=target/release/hintflow torch_step='' python=python3 torch_device=cuda device='' out='' minutes=5.5
cases=lens1,lens1d0,lens2,lens2d0,cross4,cross4d0,small kernels=lens2,cross4 seconds=1 rounds=2 repeat=9
# Of all tests together. A driver that meets the kernels for the first time compiles them for most of it; a software one for
# minutes.
tests_seconds=150
tests=()
while [ $# -gt 0 ]; do
    option=$1
    case $option in
        -h | --help) usage; exit 0 ;;
        --quick) cases=small kernels=small seconds=0.2 rounds=1 repeat=3 tests_seconds=260; shift; continue ;;
    esac
    case $option in
        --hintflow | --tests | --torch-step | --python | --torch-device | --device | --cases | --kernels | --minutes | --out) ;;
        *) echo "gpu.sh: there is no option $option; --help lists them" >&2; exit 2 ;;
    esac
    [ $# -ge 2 ] || { echo "gpu.sh: $option needs a value; --help lists the options" >&2; exit 2; }
    case $option in
        --hintflow) hintflow=$(named "$2") ;;
        --tests) tests+=("$(named "$2")") ;;
        --torch-step) torch_step=$(named "$2") ;;
        # A bare name is looked for on the PATH.
        --python) case $2 in */*) python=$(named "$2") ;; *) python=$2 ;; esac ;;
        --torch-device) torch_device=$2 ;;
        --device) device=$2 ;;
        --cases) cases=$2 ;;
        --kernels) kernels=$2 ;;
        --minutes) minutes=$2 ;;
        --out) out=$(named "$2") ;;
    esac
    shift 2
done
[ -x "$hintflow" ] || { echo "gpu.sh: no program $hintflow that can run here" >&2; exit 2; }
[ -z "$torch_step" ] || [ -f "$torch_step" ] || { echo "gpu.sh: no script $torch_step" >&2; exit 2; }
for binary in ${tests[@]+"${tests[@]}"}; do
    [ -x "$binary" ] || { echo "gpu.sh: no test binary $binary that can run here" >&2; exit 2; }
done
[[ $minutes =~ ^[0-9]{1,4}([.][0-9]+)?$ ]] || { echo "gpu.sh: --minutes takes a number, such as 5.5, not $minutes" >&2; exit 2; }
# The program complains about the first name that it does not know; that must be the last of these, which nothing has.
for names in "$cases" "$kernels"; do
    complaint=$("$hintflow" -q bench step --case "$names,?" 2>&1) || true
    case $complaint in *'`?`'*) ;; *) echo "gpu.sh: ${complaint:-$hintflow is not the program}" >&2; exit 2 ;; esac
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=${out:-$scratch/out}
mkdir -p "$out" || exit 1
[ -z "$(ls -A "$out")" ] || { echo "gpu.sh: $out is not empty; choose another folder for the results" >&2; exit 2; }
limit=$(awk -v minutes="$minutes" 'BEGIN { print int(60 * minutes) }')
failed=()

# Mesa's layer that sorts devices by display complains where there is none.
[ -n "${XDG_RUNTIME_DIR:-}" ] || export NODEVICE_SELECT=1

if [ -z "$device" ]; then
    # "auto takes 0: NAME", or "auto takes cpu: ..." where there is no GPU.
    device=$("$hintflow" devices | sed -n 's/^auto takes \([^:]*\):.*/\1/p')
    if [ "$device" = cpu ] || [ -z "$device" ]; then
        "$hintflow" devices
        echo "gpu.sh: there is no real GPU here; --device names another adapter" >&2
        exit 4
    fi
else
    adapters=$("$hintflow" devices | sed -n 's/^\([0-9][0-9]*\)  *\(.*\)/\1: \2/p')
    # By number, or by a part of the name.
    if ! { [[ $device =~ ^[0-9]+$ ]] && grep -q "^$device: " <<<"$adapters"; } &&
        ! { [[ ! $device =~ ^[0-9]+$ ]] && sed 's/^[0-9]*: //' <<<"$adapters" | grep -qiF -- "$device"; }; then
        printf 'gpu.sh: there is no adapter %s; there are:\n%s\n' "$device" "${adapters:-none}" >&2
        exit 4
    fi
fi

# A part is a process group of its own, which hears of nothing but this.
stop() { # exit code
    trap '' INT TERM
    if [ -s "$scratch/running" ]; then kill "$(cat "$scratch/running")" 2>/dev/null; else kill $(jobs -p) 2>/dev/null; fi
    wait
    echo "gpu.sh: stopped" >&2
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM

# Runs a part: its title, the file that keeps what it prints, its most seconds, the command.
part() {
    local title=$1 file=$2 most=$3 left=$((limit - SECONDS)) begun=$SECONDS status
    shift 3
    printf '\n## %s\n\n' "$title"
    [ "$most" -le "$left" ] || most=$left
    if [ "$most" -lt 3 ]; then
        echo "left out: no time is left"
        failed+=("$title: left out")
        return
    fi
    # Of a part that is killed with all its group there is none.
    echo 137 >"$scratch/status"
    # In the background: a signal is not heard while something runs in the foreground.
    {
        timeout -k 5 "$most" "$@" 2>&1 &
        echo $! >"$scratch/running"
        wait $!
        echo $? >"$scratch/status"
    } | tee "$out/$file" &
    wait $!
    status=$(cat "$scratch/status")
    rm -f "$scratch/running"
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
        failed+=("$title: stopped after $most s")
    elif [ "$status" != 0 ]; then
        failed+=("$title: exit code $status")
    fi
    echo "($((SECONDS - begun)) s)"
}

part "Devices" devices.txt 20 "$hintflow" devices --limits
if command -v nvidia-smi >/dev/null; then part "Driver" driver.txt 20 nvidia-smi; fi

# Test binaries find their files by the first variable and the adapter by the second.
export CARGO_MANIFEST_DIR=$PWD HINTFLOW_TEST_DEVICE=$device
for binary in ${tests[@]+"${tests[@]}"}; do
    case $binary in */*) ;; *) binary=./$binary ;; esac
    name=$(basename "$binary")
    begun=$SECONDS
    part "Tests of $name on adapter $device" "tests-$name.txt" "$tests_seconds" "$binary" gpu:: --test-threads 4
    tests_seconds=$((tests_seconds - (SECONDS - begun)))
    # The filter may match nothing, which is a success to the test binary.
    if grep -q '^test result: ok\. 0 passed' "$out/tests-$name.txt" 2>/dev/null; then failed+=("Tests of $name: none ran"); fi
done

compare=(benches/compare.sh --hintflow "$hintflow" --python "$python" --device "$device" --torch-device "$torch_device"
    --repeat "$repeat" --seconds "$seconds" --together)
if [ -n "$torch_step" ]; then compare+=(--torch-step "$torch_step"); fi
bench=(--device "$device" --seconds "$seconds" --case "$kernels")
part "Steps and samples" compare.txt 150 "${compare[@]}" --rounds "$rounds" --cases "$cases" --on input
part "Kernels" kernels.txt 60 "$hintflow" bench kernels "${bench[@]}"
part "Steps in detail" steps.txt 30 "$hintflow" bench step "${bench[@]}"
part "Networks that see transformed columns" compare-output.txt 60 "${compare[@]}" --rounds 1 --cases "$kernels" --on output

printf '\n## Result\n\n'
# The adapter that was timed, and what is said of it among the devices.
adapter=$(sed -n 's/^[a-z0-9]* on \(.*\)$/\1/p' "$out/steps.txt" 2>/dev/null | head -n 1)
echo "${adapter:-unknown adapter}:$(awk -v name="$adapter" 'name != "" && index($0, name) { getline; print; exit }' "$out/devices.txt" | sed 's/^ */ /')"
printf '\nNetworks see untransformed columns:\n\n'
grep '^|' "$out/compare.txt" || echo "nothing was timed"
if [ -f "$out/compare-output.txt" ] && [ "$(grep -c '^|' "$out/compare-output.txt")" -gt 2 ]; then
    printf '\nNetworks see transformed columns:\n\n'
    grep '^|' "$out/compare-output.txt"
fi
# What the model of time predicted of this card, beside what was measured. Commas in its name would part two cards.
if "$hintflow" bench model --gpu "${adapter//,/ }" --case "$cases" >"$out/model.txt" 2>&1; then
    printf '\nSteps, measured and predicted (benches/README.md):\n\n| case | measured, ms | predicted, ms | measured / predicted |\n|---|---|---|---|\n'
    awk -F' *[|] *' '
        NR == FNR { if (FNR > 2) { sub(/ .*/, "", $3); predicted[$2] = $3 } next }
        $3 == "step" && $2 in predicted {
            measured = $5
            sub(/ .*/, "", measured)
            if (measured > 0) printf "| %s | %s | %s | %.2f |\n", $2, measured, predicted[$2], measured / predicted[$2]
        }' "$out/model.txt" "$out/compare.txt"
else
    printf '\nNo prediction: %s\n' "$(tail -n 1 "$out/model.txt")"
fi
for name in ${tests[@]+"${tests[@]}"}; do
    printf '\n%s: %s\n' "$(basename "$name")" "$(sed -n 's/^test result: \(.*\); [0-9]* measured.*/\1/p' "$out/tests-$(basename "$name").txt")"
done
printf '\n%s s in all\n' "$SECONDS"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED  %s\n' "${failed[@]}"
    exit 1
fi
