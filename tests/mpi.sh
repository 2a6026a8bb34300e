#!/bin/sh
# Trainings and samples of real MPI processes, by Open MPI and by MPICH: 1, 2 and 4 ranks end with the bits of a program
# without MPI, for a `flow`, a `hint` and a `cinn`; a rank that is killed leaves a checkpoint that goes on on another number
# of ranks; a rank with other settings is named. On Debian and Ubuntu this installs both; elsewhere it says what to install
# and exits with 3.
#
#     tests/mpi.sh [PROGRAM]      a hintflow with the feature mpi; built if none is given
#     KILLS=10 tests/mpi.sh       how often a rank is killed, for each MPI
set -eu
cd "$(dirname "$0")/.."

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if ! command -v mpirun.openmpi >/dev/null || ! command -v mpirun.mpich >/dev/null; then
    if command -v apt-get >/dev/null; then
        echo "Installing Open MPI and MPICH." >&2
        as_root apt-get update -q || true
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y openmpi-bin mpich || true
    fi
    if ! command -v mpirun.openmpi >/dev/null || ! command -v mpirun.mpich >/dev/null; then
        echo "SKIPPED: install Open MPI and MPICH so that mpirun.openmpi and mpirun.mpich start their programs." >&2
        exit 3
    fi
fi

if [ $# -gt 0 ]; then
    program=$1
else
    cargo build --locked --no-default-features --features cli,mpi
    program=${CARGO_TARGET_DIR:-target}/debug/hintflow
fi
program=$(realpath "$program")
if ldd "$program" | grep -qi mpi; then
    echo "FAILED: $program is linked with MPI, which is to be opened at run time" >&2
    exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "FAILED: $*" >&2
    [ ! -f log ] || cat log >&2
    exit 1
}

# So many ranks of an MPI, each with one thread.
ranks() {
    mpi=$1 count=$2
    shift 2
    case $mpi in
    openmpi) mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -n "$count" "$@" ;;
    mpich) mpirun.mpich -n "$count" "$@" ;;
    esac
}

# A machine whose launchers start nothing, for want of a name of its own for example, says nothing of this program.
for mpi in openmpi mpich; do
    if ! ranks $mpi 2 true >log 2>&1; then
        cat log >&2
        echo "SKIPPED: mpirun.$mpi starts no processes here" >&2
        exit 3
    fi
done

# What of a run must not depend on ranks: its model, its samples, and its metrics but for the rate.
same_run() {
    cmp "$1/model.safetensors" "$2/model.safetensors" || fail "the models of $1 and $2 differ"
    cut -d, -f1-6 "$1/metrics.csv" >a
    cut -d, -f1-6 "$2/metrics.csv" >b
    cmp a b || fail "the metrics of $1 and $2 differ"
}

awk 'BEGIN {
    srand(7); OFS = ","
    print "a", "b", "c", "d"
    for (i = 0; i < 3000; i++) { u = rand(); v = rand(); print u, v, u * v + rand() / 9, u - rand() }
}' >table.csv
settings="--epochs 3 --batch 700 --no-report --device cpu -q --set model.width=12 --set model.blocks=2"

train() {
    kind=$1 out=$2
    shift 2
    case $kind in
    flow) "$@" "$program" train table.csv $settings --out "$out" ;;
    *) "$@" "$program" train table.csv $settings --out "$out" --set model.kind="$kind" --given c,d ;;
    esac >log 2>&1 || fail "train $kind: $out"
}

head -n 1200 table.csv >some.csv
for kind in flow hint cinn; do
    train $kind "alone-$kind" env
    if [ $kind = cinn ]; then
        tail -n +2 some.csv | head -n 1 | cut -d, -f3,4 >seen && (echo c,d; cat seen) >seen.csv
        drawn="--given seen.csv"
    else
        drawn=
    fi
    "$program" sample "alone-$kind" -n 1000 $drawn --device cpu -q -o "alone-$kind.npy"
    "$program" log-prob "alone-$kind" some.csv --device cpu -q >"alone-$kind.txt" 2>/dev/null
    for mpi in openmpi mpich; do
        for count in 1 2 4; do
            run=$mpi-$count-$kind
            train $kind "$run" ranks $mpi $count
            same_run "alone-$kind" "$run"
            ranks $mpi $count "$program" sample "$run" -n 1000 $drawn --device cpu -q -o "$run.npy" >log 2>&1 ||
                fail "sample of $run"
            cmp "alone-$kind.npy" "$run.npy" || fail "the samples of $run differ"
            ranks $mpi $count "$program" log-prob "$run" some.csv --device cpu -q >"$run.txt" 2>/dev/null ||
                fail "log-prob of $run"
            cmp "alone-$kind.txt" "$run.txt" || fail "the densities of $run differ"
            echo "ok: $run"
        done
    done
done

# A rank that dies ends the job; the run goes on on another number of ranks, to the same bits.
kills=${KILLS:-3}
long="--epochs 40 --batch 700 --no-report --device cpu -q --set model.width=24 --set run.checkpoint_every=7"
"$program" train table.csv $long --out whole >log 2>&1 || fail "train whole"
for mpi in openmpi mpich; do
    kill=0
    while [ $kill -lt "$kills" ]; do
        kill=$((kill + 1))
        run=killed-$mpi-$kill
        ranks $mpi 2 "$program" train table.csv $long --out "$run" >log 2>&1 &
        launcher=$!
        while [ ! -f "$run/config.toml" ]; do
            kill -0 $launcher 2>/dev/null || fail "$run did not begin"
            sleep 0.02
        done
        sleep "0.$((kill * 37 % 97))"
        victim=$(pgrep -f "$program train table.csv .*--out $run\$" | while read -r pid; do
            [ "$(readlink "/proc/$pid/exe")" != "$program" ] || echo "$pid"
        done | sed -n "$((kill % 2 + 1))p")
        [ -z "$victim" ] || kill -9 "$victim" 2>/dev/null || true
        if wait $launcher; then
            echo "note: $run was done before it was killed"
        else
            grep -qiE "killed|signal|terminat|died" log || fail "nothing says that a rank of $run was killed"
        fi
        ranks $mpi $((kill % 2 * 2 + 1)) "$program" train --resume "$run" --no-report --device cpu -q >log 2>&1 ||
            fail "resume of $run"
        same_run whole "$run"
        echo "ok: $run"
    done
done

# A rank that would train something else is named, on every MPI.
cat >odd.sh <<'END'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
[ "$rank" != 1 ] || set -- "$@" --seed 7
exec "$@"
END
chmod +x odd.sh
for mpi in openmpi mpich; do
    if ranks $mpi 3 ./odd.sh "$program" train table.csv $settings --out odd >log 2>&1; then
        fail "a rank with another seed was not seen"
    fi
    grep -q "rank 1 on .* has another seed than rank 0" log || fail "the rank with another seed was not named"
    [ ! -e odd/config.toml ] || fail "a run began with different seeds"
    echo "ok: odd rank, $mpi"
done
echo "All is well."
