#!/bin/bash
# A hostile client against a real agent. After each attack the agent lives, serves others, and has nothing left of it. deploy/docs/security.md
# describes the attacks.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=true
prepare hostile
# The bystander has the same level, so that the two share the GPU.
sed -i 's/uid: 65533, level: normal/uid: 65533, level: low/' "$work/agent.yaml"
cat >>"$work/agent.yaml" <<END
    - {uid: 65532, level: low, memory: 96Mi}
    - {uid: 65531, level: normal}
    - {uid: 65530, level: normal}
logLevel: debug
END
export WEIR_SIM_GPUS=2
WEIR_METRICS_PORT=$(python3 e2e/bench/lib/free_port.py)
export WEIR_METRICS_PORT
sed -i "s/^metrics:.*/metrics: {address: \"127.0.0.1:$WEIR_METRICS_PORT\"}/" "$work/agent.yaml"
check "the agent is up" start_agent
gpu=$(status -r '.gpus[0].gpu')

descriptors() { find "/proc/$agent/fd" -mindepth 1 2>/dev/null | wc -l; }
memory_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$agent/status"; }
as_before() { [ "$(descriptors)" -le "$before" ]; }
nobody() { [ "$(status '.clients | length')" = 0 ]; }
no_demand() { [ "$(status '[.gpus[].demand[]] | add')" = 0 ]; }

# withstands ATTACK TEXT
withstands() {
    timeout -k 5 60 "$work/bin/hostile" "$work/agent.sock" "$gpu" "$1" >"$work/$1.log" 2>&1
    report $? "$2"
    grep '^#' "$work/$1.log"
    kill -0 "$agent" && eventually 20 nobody && eventually 20 as_before
    report $? "then the agent lives, with the descriptors that it had"
}

# hostile UID ATTACK [SECONDS]: in the place of this shell.
hostile() {
    exec setpriv --reuid="$1" --regid="$1" --clear-groups "$work/bin/hostile" "$work/agent.sock" "$gpu" "${@:2}"
}

siege=
end_siege() {
    [ -z "$siege" ] || { kill -KILL "$siege"; wait "$siege"; } 2>/dev/null
    siege=
}
trap 'end_siege; finish' EXIT

begin_siege() { # UID ATTACK
    (hostile "$1" "$2" 600) >"$work/$2.log" 2>&1 &
    siege=$!
    check "a siege ($2)" eventually 60 grep -q ready "$work/$2.log"
}

honest() { (hostile 65531 honest); }

# Another container has all that it needs.
check_others() {
    check "others have a bit, an account and a kernel" honest
    check "and the agent answers the kubelet's probe" "$B/bin/weirctl" health --socket "$work/control.sock"
}

# besieged UID ATTACK
besieged() {
    begin_siege "$@"
    check_others
    end_siege
    kill -0 "$agent" && eventually 20 nobody && eventually 20 no_demand && eventually 20 as_before
    report $? "then the agent lives, with the descriptors that it had, and nobody has demand"
}

# Once, so that all is open that stays open.
check "a connection ends with the process that made it, whoever holds it" timeout 60 "$work/bin/hostile" "$work/agent.sock" "$gpu" orphan
check_others
eventually 20 nobody
eventually 20 test -S "$work/control.sock"
before=$(descriptors)
withstands connections "600 connections of one container: as many as it may have, and others get in"
withstands flood "eight clients that never stop to send: others get in, and few of their messages are read"
withstands rights "descriptors that do not belong, and too many: none is taken"
withstands garbage "3000 packets of garbage"
withstands liar "one that always says it is almost done: its equal gets its turns"
for attack in compile accounts http object flood garbage rights; do besieged 65534 "$attack"; done
for attack in bits compile forge; do besieged 65530 "$attack"; done

# A client that is told a lower level keeps the pages from before.
begin_siege 0 demoted
sed -i 's/uid: 0, level: high/uid: 0, level: low/' "$work/agent.yaml"
kill -HUP "$agent"
check "it is told its new level" eventually 20 grep -q '^level 0' "$work/demoted.log"
check "its demand ends" eventually 20 no_demand
end_siege
sed -i 's/uid: 0, level: low/uid: 0, level: high/' "$work/agent.yaml"
kill -HUP "$agent"
check "nobody is left" eventually 20 nobody

# Ways around the limit of memory, under libweir.
governed 65532 hostile "$work/agent.sock" "$gpu" memory >"$work/memory.log" 2>&1
report $? "no way leads around the limit of memory"

# Leases on the pages of an agent that is killed: the next one does not wait for them.
begin_siege 0 lease
kill -KILL "$agent"
wait "$agent" 2>/dev/null
check "leases on its pages, when the agent is gone" eventually 20 grep -q 'leases$' "$work/lease.log"
rm -f "$work/control.sock"
start_agent
report $? "another agent starts at once"
check_others
end_siege
eventually 20 nobody
other=$(status -r '.gpus[1].gpu')
check "at the socket of one GPU another one cannot be had" timeout 60 "$work/bin/hostile" "$work/$other/agent.sock" "$gpu" socket
! timeout 60 "$work/bin/hostile" "$work/$gpu/agent.sock" "$gpu" socket >"$work/own.log" 2>&1 && grep -q 'are given out' "$work/own.log"
report $? "but its own"
resident=$(memory_kib)
echo "# resident: $resident KiB"
check "the agent has not grown beyond 64 MiB" [ "$resident" -lt 65536 ]

"$work/bin/hostile" "$work/agent.sock" "$gpu" words >"$work/words.log" 2>&1 &
clients[$!]=words
check "one whose names are made to be printed" eventually 10 grep -q ready "$work/words.log"
"$B/bin/weirctl" status --socket "$work/control.sock" >"$work/table" 2>&1 &&
    "$B/bin/weirctl" status --json --socket "$work/control.sock" >"$work/status.json"
report $? "is shown"
! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f-\xff]' "$work/table" "$work/status.json" "$work/agent.log"
report $? "and no byte of it does anything to a terminal"
jq -e '.clients | length == 1 and .[0].level == 0' "$work/status.json" >/dev/null
report $? "nor to the status"
[ $failed -eq 0 ] || { tail -n 3 "$work"/*.log; exit 1; }
