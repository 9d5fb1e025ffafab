#!/bin/bash
# Every workload on the simulated GPU: right results pass, and a lost launch does not.
set -euo pipefail

B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/sim"
export WEIR_SIM_DIR=$tmp/sim LD_LIBRARY_PATH=$PWD/$B/simcuda

fail() {
	echo "workloads: $*" >&2
	exit 1
}

expect() { # EXIT-CODE COMMAND...
	local want=$1 code=0
	shift
	timeout 120 "$@" >"$tmp/out" 2>&1 || code=$?
	[ "$code" = "$want" ] || fail "$* ended with $code, not $want: $(tail -n 2 "$tmp/out")"
}

for program in vector-add matrix-multiply reduction long-block; do
	expect 0 "$B/bin/$program"
	expect 0 "$B/bin/$program" --seed 7 --size 33
done
for seed in 1 2 3; do
	expect 0 "$B/bin/stream-order" --seed $seed
done
expect 0 "$B/bin/burst" --requests 5 --gap-min-us 0 --gap-max-us 1000
expect 0 "$B/bin/filler" --seconds 0.2
expect 0 "$B/bench/bench-launch" --iterations 2

# Stopped from outside, a workload still checks what it did.
"$B/bin/filler" --ready-file "$tmp/ready" --stop-file "$tmp/stop" >"$tmp/filler.json" &
for _ in $(seq 300); do
	[ ! -e "$tmp/ready" ] || break
	sleep 0.1
done
touch "$tmp/stop"
wait $! || fail "filler does not end well when told to stop"
jq -e '.kernels > 0' "$tmp/filler.json" >/dev/null || fail "filler prints $(cat "$tmp/filler.json")"

# A driver that loses the second launch.
for program in vector-add matrix-multiply reduction long-block "burst --requests 2" "filler --seconds 0.2"; do
	# shellcheck disable=SC2086 # the options are words
	expect 1 env FAULT_LAUNCH=2 LD_PRELOAD="$B/lib/fault.so" "$B"/bin/$program
	grep -q 'wrong result' "$tmp/out" || fail "$program failed for another reason: $(cat "$tmp/out")"
done
for launch in 5 20 60; do
	expect 1 env FAULT_LAUNCH=$launch LD_PRELOAD="$B/lib/fault.so" "$B/bin/stream-order" --threads 1
	grep -q 'word\|host function' "$tmp/out" || fail "stream-order failed for another reason: $(cat "$tmp/out")"
done

expect 2 "$B/bin/vector-add" --size many
expect 2 "$B/bin/vector-add" --no-such-option
echo "workloads: ok"
