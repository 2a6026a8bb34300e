#!/usr/bin/env bash
# Times hintflow and a plain PyTorch implementation in turns, and prints the medians of all rounds, with the extremes, as a
# table in Markdown.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: benches/compare.sh [options]

  --hintflow FILE      the program [target/release/hintflow]
  --torch-step FILE    a script that times the same cases in PyTorch and prints a line of JSON for each:
                       FILE --device D --on output --cases NAME,NAME --repeat N [--threads N] [--sample]
                       Without it, hintflow alone is timed
  --python FILE        the Python that has PyTorch [python3]
  --device D           of hintflow: cpu, gpu, name or number of an adapter [cpu]
  --torch-device D     of PyTorch: cpu, cuda [cpu]
  --threads N          threads of both, on CPUs [2]
  --cases A,B          [lens1,lens1d0,lens2,lens2d0,cross4,cross4d0,small]
  --on X               what the networks see: output, input [output]
  --what X             step, sample or both [both]
  --rounds N           [3]
  --repeat N           repeats of PyTorch in a round [5]
  --seconds S          time of hintflow for each result in a round [2]
  --together           all cases of one program, then all of the other: fewer starts, further apart
  --raw FILE           keeps every result: round, program, case, step or sample, milliseconds
TEXT
}

hintflow=target/release/hintflow torch_step='' python=python3 device=cpu torch_device=cpu threads=2
cases=lens1,lens1d0,lens2,lens2d0,cross4,cross4d0,small on=output what=both rounds=3 repeat=5 seconds=2 together='' raw=''
while [ $# -gt 0 ]; do
    option=$1
    case $option in
        -h | --help) usage; exit 0 ;;
        --together) together=yes; shift; continue ;;
    esac
    case $option in
        --hintflow) hintflow=${2-} ;;
        --torch-step) torch_step=${2-} ;;
        --python) python=${2-} ;;
        --device) device=${2-} ;;
        --torch-device) torch_device=${2-} ;;
        --threads) threads=${2-} ;;
        --cases) cases=${2-} ;;
        --on) on=${2-} ;;
        --what) what=${2-} ;;
        --rounds) rounds=${2-} ;;
        --repeat) repeat=${2-} ;;
        --seconds) seconds=${2-} ;;
        --raw) raw=${2-} ;;
        *) echo "compare.sh: there is no option $option; --help lists them" >&2; exit 2 ;;
    esac
    [ $# -ge 2 ] || { echo "compare.sh: $option needs a value; --help lists the options" >&2; exit 2; }
    shift 2
done
case $what in step | sample | both) ;; *) echo "compare.sh: --what takes step, sample or both" >&2; exit 2 ;; esac
whole() { # option value
    [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || { echo "compare.sh: $1 takes a whole number from 1 on, not $2" >&2; exit 2; }
}
whole --rounds "$rounds"
whole --repeat "$repeat"
whole --threads "$threads"
# Not one that is found on the PATH.
case $hintflow in */*) ;; *) hintflow=./$hintflow ;; esac
[ -f "$hintflow" ] && [ -x "$hintflow" ] || { echo "compare.sh: no program $hintflow; build it (cargo build --release) or name it with --hintflow" >&2; exit 2; }
[ -z "$torch_step" ] || [ -f "$torch_step" ] || { echo "compare.sh: no script $torch_step" >&2; exit 2; }
# The program complains about the first name that it does not know; that must be the last of these, which nothing has.
complaint=$("$hintflow" -q bench step --case "$cases,?" 2>&1) || true
case $complaint in *'`?`'*) ;; *) echo "compare.sh: ${complaint:-$hintflow is not the program}" >&2; exit 2 ;; esac
# Each once, without blanks.
cases=$(tr -d '[:blank:]' <<<",$cases," | sed 's/,all,/,lens1,lens1d0,lens2,lens2d0,cross4,cross4d1,cross4d2,cross4d0,small,/' |
    tr ',' '\n' | awk '$0 != "" && !seen[$0]++' | paste -sd , -)
[ -z "$raw" ] || [ ! -e "$raw" ] || { echo "compare.sh: $raw exists already; choose another name" >&2; exit 2; }

# Ratios of two programs of which one was disturbed look as good as any.
if [ -r /proc/loadavg ] && read -r load _ </proc/loadavg && awk -v load="$load" 'BEGIN { exit load < 0.7 }'; then
    echo "compare.sh: the machine is busy (load $load), so times and ratios may be far off" >&2
fi
# What is compared is what the options say.
unset HINTFLOW_TRAIN__MEMORY

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
results=${raw:-$scratch/results}
failed=''
: >"$results"

wanted() { # step or sample
    [ "$what" = "$1" ] || [ "$what" = both ]
}

# Lines of JSON to "round program case what milliseconds", for each of the cases one.
collect() { # round program part cases
    wanted "$3" || return 0
    awk -v round="$1" -v program="$2" -v part="$3" -v cases="$4" '
    # The text of a field from its value on.
    function field(name) { return match($0, "\"" name "\" *: *") ? substr($0, RSTART + RLENGTH) : "" }
    {
        name = field("case"); value = field(part "_ms")
        if (name !~ /^"[^"]*"/ || value == "") next
        name = substr(name, 2); sub(/".*/, "", name); sub(/[ ,}].*/, "", value)
        found[name]++
        time[name] = value
    }
    END {
        n = split(cases, names, ",")
        for (i = 1; i <= n; i++) {
            name = names[i]; value = time[name]
            if (found[name] == 1 && value ~ /^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/ && value + 0 > 0) {
                print round, program, name, part, value + 0
                continue
            }
            bad = 1
            what = found[name] == 0 ? "no " part "_ms" : found[name] > 1 ? "several " part "_ms" : part "_ms " value
            print "compare.sh: " (program == "torch" ? "PyTorch" : program) " printed " what " for " name ", one positive number is wanted" >"/dev/stderr"
        }
        exit bad
    }' "$scratch/lines" >>"$results" || failed=yes
}

torch() { # round cases
    [ -n "$torch_step" ] || return 0
    local round=$1 names=$2
    set -- --device "$torch_device" --on "$on" --cases "$2" --repeat "$repeat"
    [ "$torch_device" != cpu ] || set -- "$@" --threads "$threads"
    if wanted sample; then set -- "$@" --sample; fi
    if ! "$python" "$torch_step" "$@" >"$scratch/lines" 2>"$scratch/errors"; then
        failed=yes
        echo "compare.sh: PyTorch failed on $*:" >&2
        tail -n 3 "$scratch/errors" >&2
    fi
    collect "$round" torch step "$names"
    collect "$round" torch sample "$names"
}

ours() { # round cases
    local part
    for part in step sample; do
        wanted "$part" || continue
        if ! "$hintflow" -q bench "$part" --json --case "$2" --device "$device" --threads "$threads" \
            --condition-on "$on" --seconds "$seconds" >"$scratch/lines" 2>"$scratch/errors"; then
            failed=yes
            echo "compare.sh: hintflow bench $part failed on $2:" >&2
            tail -n 3 "$scratch/errors" >&2
        fi
        collect "$1" hintflow "$part" "$2"
    done
}

# Medians over the rounds with the least and the largest; ratios of the medians, with those of single rounds.
report() {
    awk -v cases="$cases" '
    { values[$2, $3, $4] = values[$2, $3, $4] " " $5; round[$1, $2, $3, $4] = $5; if ($1 > rounds) rounds = $1 }
    function median(list,    n, v, i, j, t) {
        n = split(list, v, " ")
        for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
        return n == 0 ? "" : n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    function range(list, kind,    n, v, i, low, high) {
        n = split(list, v, " ")
        if (n < 2) return ""
        low = high = v[1] + 0
        for (i = 2; i <= n; i++) { if (v[i] + 0 < low) low = v[i] + 0; if (v[i] + 0 > high) high = v[i] + 0 }
        return kind == "ratio" ? sprintf(" (%.3f to %.3f)", low, high) : " (" number(low) " to " number(high) ")"
    }
    function ratios(name, part,    i, list) {
        for (i = 1; i <= rounds; i++)
            if ((i, "torch", name, part) in round && (i, "hintflow", name, part) in round)
                list = list " " round[i, "hintflow", name, part] / round[i, "torch", name, part]
        return range(list, "ratio")
    }
    function number(x) { return x == "" ? "-" : x < 10 ? sprintf("%.3f", x) : sprintf("%.1f", x) }
    function ratio(a, b) { return a == "" || b == "" ? "-" : sprintf("%.3f", a / b) }
    function row(part, name,    t, o) {
        t = median(values["torch", name, part]); o = median(values["hintflow", name, part])
        if (t == "" && o == "") return
        printf "| %s | %s | %s%s | %s%s | %s%s |\n", name, part, number(t), range(values["torch", name, part]), \
            number(o), range(values["hintflow", name, part]), ratio(o, t), ratios(name, part)
    }
    function recursion(a, b, part,    x, y) {
        x = median(values["hintflow", a, part]); y = median(values["hintflow", b, part])
        if (x == "" || y == "") return
        t = ratio(median(values["torch", a, part]), median(values["torch", b, part]))
        printf "| %s / %s | %s | %s | %s | |\n", a, b, part, t, ratio(x, y)
    }
    END {
        print "| case | what | PyTorch, ms | hintflow, ms | ratio |\n|---|---|---|---|---|"
        n = split(cases, names, ",")
        for (i = 1; i <= n; i++) row("step", names[i])
        for (i = 1; i <= n; i++) row("sample", names[i])
        for (i = 1; i <= n; i++) recursion(names[i], names[i] "d0", "step")
        for (i = 1; i <= n; i++) recursion(names[i], names[i] "d0", "sample")
    }' "$results"
    # Nothing timed at all is a failure.
    [ -s "$results" ]
}

# What there is when time is up.
trap 'report; exit 124' TERM

for round in $(seq "$rounds"); do
    if [ -n "$together" ]; then
        torch "$round" "$cases"
        ours "$round" "$cases"
    else
        for name in ${cases//,/ }; do
            torch "$round" "$name"
            ours "$round" "$name"
        done
    fi
    echo "round $round of $rounds" >&2
done
report
# The table has what could be timed; a caller must see that something could not.
[ -z "$failed" ]
