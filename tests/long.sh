#!/bin/sh
# The tests whose kills and damages differ from run to run, again and again: an hour, or as many minutes as are named.
# The first failure ends it, and its output names the seed.
set -eu
cd "$(dirname "$0")/.."
minutes="${1:-60}"
# Those that are too long for every change come first.
cargo nextest run --locked --no-fail-fast --run-ignored only
end=$(($(date +%s) + 60 * minutes))
rounds=0
while [ "$(date +%s)" -lt "$end" ]; do
    cargo nextest run --locked --no-fail-fast --cargo-quiet --failure-output final --status-level fail \
        -E 'test(killed) + test(damaged) + test(noise_never_panics) + test(flipped)'
    rounds=$((rounds + 1))
done
echo "$rounds rounds of kills and damages in $minutes minutes, and nothing was lost"
