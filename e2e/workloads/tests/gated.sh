#!/bin/bash
# Results stay right for a client that is held again and again: the workloads as LOW, with libweir, below
# a busy HIGH; and without an agent. Needs root: LOW is another user.
set -euo pipefail

B=${B:-build}
tmp=$(mktemp -d)
chmod 755 "$tmp"
low_user=65534
agent=''
high=''

finish() {
	local pid
	for pid in $high $agent; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$tmp"
}
trap finish EXIT

fail() {
	echo "gated: $*" >&2
	tail -n 5 "$tmp"/*.log >&2 || true
	exit 1
}

[ "$(id -u)" = 0 ] || fail "run it as root"
programs=(vector-add matrix-multiply reduction long-block stream-order)
cp "${programs[@]/#/$B/bin/}" "$B/bin/burst" "$B/lib/libweir.so" "$B/simcuda/libcuda.so.1" "$tmp/"
mkdir -m 777 "$tmp/sim"
mkdir "$tmp/state"
cat >"$tmp/agent.yaml" <<END
socket: $tmp/agent.sock
stateDir: $tmp/state
control:
  socket: $tmp/control.sock
metrics:
  address: ""
standalone:
  rules:
    - uid: $low_user
      level: low
    - uid: 0
      level: high
END

run() { # COMMAND...
	env LD_LIBRARY_PATH="$tmp" LD_PRELOAD="$tmp/libweir.so" WEIR_SOCKET="$tmp/agent.sock" \
		WEIR_SIM_DIR="$tmp/sim" WEIR_SIM_BLOCK_US=100 "$@"
}

as_low() { # COMMAND...
	run timeout 120 setpriv --reuid=$low_user --regid=$low_user --clear-groups "$@" >"$tmp/low.log" 2>&1 ||
		fail "$* ended with $?"
}

low_waits() {
	"$B/bin/weirctl" --socket "$tmp/control.sock" status --json |
		jq '[.clients[] | select(.level == 0) | .waits] | add // 0'
}

as_low "$tmp/stream-order" # nobody listens at the socket

"$B/bin/weir-agent" --config "$tmp/agent.yaml" --standalone 2>"$tmp/agent.log" &
agent=$!
for _ in $(seq 100); do
	[ ! -S "$tmp/control.sock" ] || break
	sleep 0.1
done
run "$tmp/burst" --stop-file "$tmp/stop" --ready-file "$tmp/ready" --gap-min-us 1000 --gap-max-us 3000 \
	>"$tmp/high.json" 2>"$tmp/high.log" &
high=$!
for _ in $(seq 300); do
	[ ! -e "$tmp/ready" ] || break
	sleep 0.1
done

for program in "${programs[@]}"; do
	as_low "$tmp/$program"
done
as_low "$tmp/stream-order" --seconds 4 --seed "$$" &
low=$!
waits=0
for _ in $(seq 60); do
	kill -0 "$low" 2>/dev/null || break
	now=$(low_waits)
	[ "$now" -le "$waits" ] || waits=$now
	sleep 0.1
done
wait "$low" || fail "stream-order, seed $$"
[ "$waits" -gt 0 ] || fail "LOW was never held"

touch "$tmp/stop"
wait "$high" || fail "HIGH failed"
high=''
jq -e '.requests > 0' "$tmp/high.json" >/dev/null || fail "HIGH did nothing"
echo "gated: ok, LOW was held $waits times"
