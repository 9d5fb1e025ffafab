#!/bin/bash
# The programs at their command lines: errors, weirctl's answers, and that an idle agent sleeps.
# shellcheck disable=SC2317 # `check` calls the functions
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
dir=$(mktemp -d /tmp/weir-agent-XXXXXX)
agent=$B/bin/weir-agent
pid=
trap 'stop KILL; rm -rf "$dir"' EXIT

configure() { # MORE
    printf 'socket: %s/run/agent.sock\nstateDir: %s/state\ncontrol: {socket: %s/run/control.sock}\n%s\n' \
        "$dir" "$dir" "$dir" "$1" >"$dir/config.yaml"
}

start() {
    "$agent" --config "$dir/config.yaml" --standalone 2>"$dir/log" &
    pid=$!
    for _ in $(seq 300); do
        if status 2>/dev/null || ! kill -0 $pid 2>/dev/null; then return; fi
        sleep 0.1
    done
}

stop() { # SIGNAL
    [ -z "$pid" ] || { kill -"$1" "$pid" && wait "$pid"; } 2>/dev/null
    pid=
}

status() {
    "$B/bin/weirctl" --socket "$dir/run/control.sock" status >"$dir/status"
}

says() {
    grep -qF "$1" "$dir/log"
}

refuses() { # TEXT: the agent does not start, and logs TEXT
    "$agent" --config "$dir/config.yaml" --standalone 2>"$dir/log" && return 1
    [ "$(wc -l <"$dir/log")" -ge 1 ] && says "$1"
}

wakeups() {
    awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$pid/status"
}

pretend() { # [ANSWER]: a false agent that gives this answer to each request, or none
    rm -f "$dir/pretended"
    python3 - "$dir/pretended" "$@" <<'END' &
import socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(8)
while True:
    peer, _ = server.accept()
    while not peer.recv(4096).endswith(b"\n"):
        pass
    if len(sys.argv) < 3:
        time.sleep(60)
    peer.sendall(sys.argv[2].encode())
    peer.close()
END
    pid=$!
    for _ in $(seq 300); do
        [ ! -S "$dir/pretended" ] || return
        sleep 0.1
    done
}

pretended() { # STATUS WORD...: weirctl exits with STATUS, and prints an error unless that is 0
    local expected=$1
    shift
    "$B/bin/weirctl" -s "$dir/pretended" "$@" 2>"$dir/said" >"${output:-/dev/null}"
    [ $? -eq "$expected" ] && { [ "$expected" -eq 0 ] || grep -q '^weirctl: ' "$dir/said"; }
}

configure 'metrics: {addresses: ""}'
check "a typo in the configuration is reported with its place" refuses "config.yaml:4:11: unknown key \`addresses\`"
configure 'metrics: {address: ""}'
check "a good configuration passes the check" "$agent" --config "$dir/config.yaml" --check-config
check "no arguments are an error for weirctl" bash -c "! $B/bin/weirctl"
check "no agent is an error for weirctl" bash -c "! $B/bin/weirctl -s $dir/none status"
check "no agent is not alive" bash -c "! $B/bin/weirctl -s $dir/none health"

pretend '{}'
check "an answer without clients is shown" pretended 0 status
output=/dev/full check "output that cannot be written is an error" pretended 1 status
output=/dev/full check "so is JSON" pretended 1 status --json
output=/dev/full check "and top ends with it" timeout 30 bash -c "$(declare -f pretended); B=$B dir=$dir pretended 1 top -f 10ms"
check "one without a policy is an error" pretended 1 policy
check "one without a trace is an error" pretended 1 trace
stop KILL
pretend 'no JSON'
check "an answer other than JSON is an error" pretended 1 status --json
stop KILL
pretend
pretended 1 status &
waiting=$!
check "an agent that hangs is not alive" pretended 1 health
check "which weirctl says" grep -q 'does not answer' "$dir/said"
check "long before other commands give up" kill -0 $waiting
check "but these do not wait for ever" wait $waiting
check "and say why" grep -q 'does not answer' "$dir/said"
stop KILL

start
check "without a GPU it logs that and runs" says "no NVML"
check "weirctl shows a table" status
check "with no clients in it" grep -q "no clients" "$dir/status"
check "weirctl shows JSON" bash -c "$B/bin/weirctl -s $dir/run/control.sock status --json | jq -e '.clients == []'"
ctl() { timeout 30 "$B/bin/weirctl" -s "$dir/run/control.sock" "$@"; }
check "weirctl shows the policy" [ "$(ctl policy)" = whpf ]
check "weirctl says that the agent is alive" [ "$(ctl health)" = ok ]
check "weirctl changes it" [ "$(ctl policy ffs)$(ctl policy)" = ffsffs ]
check "and says it as JSON" bash -c "$B/bin/weirctl -s $dir/run/control.sock policy hpf --json | jq -e '.policy == \"hpf\"'"
check "an unknown policy is an error" bash -c "! $B/bin/weirctl -s $dir/run/control.sock policy best"
check "weirctl top repeats" [ "$(ctl top -n 2 -f 10ms | grep -c 'no clients')" = 2 ]
check "top is JSON, too" bash -c "$B/bin/weirctl -s $dir/run/control.sock top -n 1 -f 10ms --json | jq -e '.clients == []'"
for times in 1x -1 0 4294967297; do
    check "top's times are a number, not $times" [ "$(ctl top -n "$times" -f 1ms 2>&1 | grep -c 'expected a number')" = 1 ]
done
check "hold needs a client" bash -c "! $B/bin/weirctl -s $dir/run/control.sock hold"
check "and one that exists" bash -c "! $B/bin/weirctl -s $dir/run/control.sock hold 5"
check "no GPU: no trace" bash -c "! $B/bin/weirctl -s $dir/run/control.sock trace -f 10ms"
check "clients of all users may connect" [ "$(stat -c %a "$dir/run/agent.sock")" = 666 ]
check "only the owner may control" [ "$(stat -c %a "$dir/run/control.sock")" = 600 ]
sleeps() { # for a second, once it is done with the commands above
    local before
    for _ in $(seq 20); do
        before=$(wakeups)
        sleep 1
        [ "$(wakeups)" != "$before" ] || return 0
    done
    return 1
}
check "an idle agent does not wake up" sleeps
mv "$dir/log" "$dir/first"
check "a second agent does not start" refuses "another agent listens there"
check "nor disturb the first" status

stop KILL
# As in a pod: root, without the right to raise the limit of open files.
(ulimit -Sn 256 && ulimit -Hn 2048 && exec setpriv --bounding-set -sys_resource "$agent" --config "$dir/config.yaml" --standalone 2>"$dir/log") &
pid=$!
for _ in $(seq 300); do status && break; sleep 0.1; done 2>/dev/null
check "an agent takes all open files that it may have" [ "$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")" = 2048 ]
check "and warns that they are few" says "open files are limited"
stop KILL
start
check "the next agent takes over a killed agent's sockets" status
stop TERM
check "a stopped agent removes its sockets" [ ! -e "$dir/run/agent.sock" ]

configure 'metrics: {address: "192.0.2.1:1"}'
check "an address that is not ours is an error" refuses "metrics.address 192.0.2.1:1"
configure 'metrics: {address: ""}'
rm -rf "$dir/state"
touch "$dir/state"
check "a stateDir that is a file is an error" refuses "stateDir $dir/state"
exit $failed
