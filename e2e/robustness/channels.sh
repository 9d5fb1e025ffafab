#!/bin/bash
# Tenants that lie about their channel groups: handles that are freed, random, of a copy engine or of another process, and
# descriptors of others, or of something else. Each is one line in the agent's log; the agent answers, a bystander is stopped and goes on as
# before, and nothing is left of the liar. Nor of 10 000 contexts that one process makes and destroys.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=true
prepare channel-liar counter
export WEIR_SIM_SMS=4 WEIR_SIM_SLICES=1 LD_LIBRARY_PATH=$PWD/$B/simcuda
mkdir -m 777 "$work/client"
page=$work/client/count
CONTEXTS=${CONTEXTS:-10000}

count() { od -An -tu4 -N4 "$page" | tr -d ' '; }
moves() { local before; before=$(count) && sleep 0.2 && [ "$(count)" != "$before" ]; }
stands() { ! moves; }
works() { [ "$(status '.gpus[0].hardwarePreemption')" = true ]; }
of() { status -r "first(.clients[] | select(.command == \"$1\")) | $2"; } # PROGRAM WHAT
is_usable() { [ "$(of counter .hardwarePreemption)" = true ]; }
hold() { "$B/bin/weirctl" --socket "$work/control.sock" hold "$(of counter .client)" --for 60s; }
release() { "$B/bin/weirctl" --socket "$work/control.sock" release "$(of counter .client)"; }
descriptors() { find "/proc/$agent/fd" -mindepth 1 2>/dev/null | wc -l; }
as_before() { [ "$(descriptors)" -le "$before" ]; }
is_gone() { [ "$(status "[.clients[] | select(.command == \"channel-liar\")] | length")" = 0 ]; }
refusals() { grep -c "process $liar: its channel group is not used" "$work/agent.log"; }
is_refused() { [ "$(refusals)" = 1 ]; }
is_judged() { [ "$(of channel-liar .hardwarePreemption)" = true ]; }

begin_lie() { # LIE
    rm -f "$work/client/lies" "$work/client/stop"
    sleep 1 # the log has one such line a second
    setpriv --reuid=65533 --regid=65533 --clear-groups "$work/bin/channel-liar" --lie "$1" --socket "$work/agent.sock" \
        --seconds 300 --ready-file "$work/client/lies" --stop-file "$work/client/stop" >"$work/liar.log" 2>&1 &
    liar=$!
    clients[$liar]=channel-liar
    eventually 30 test -e "$work/client/lies"
}

end_lie() {
    touch "$work/client/stop"
    wait "$liar" && unset "clients[$liar]" && eventually 30 is_gone && eventually 30 as_before
}

check_bystander() {
    check "a bystander is held" hold
    check "and stopped" eventually 30 stands
    check "and goes on when it is released" eval 'release && eventually 30 moves'
}

# lie VERDICT LIE
lie() {
    check "$2" begin_lie "$2"
    check "the agent's verdict" eventually 30 "$1"
    check_bystander
    check "then the agent lives, with the descriptors that it had" end_lie
}

check "the agent is up" start_agent
check "hardware preemption works" eventually 30 works
governed 65534 counter --file "$page" --seconds 900 --ready-file "$work/client/ready" >"$work/counter.log" 2>&1 &
counter=$!
clients[$counter]=counter
check "a bystander with a kernel that never leaves" eventually 30 test -e "$work/client/ready"
check "whose channel group is known" eventually 30 is_usable
check_bystander
before=$(descriptors)
for name in random freed others-handles others-descriptor channel pipe memory-file other-device; do lie is_refused "$name"; done
# What is the liar's own, or what another process gave away, harms only them.
for name in others-channels other copy-engine closed; do lie is_judged "$name"; done
check "$CONTEXTS contexts, one after the other" governed 65533 channel-liar --contexts "$CONTEXTS"
check "leave nothing" eval 'eventually 30 is_gone && eventually 30 as_before'
check_bystander
[ $failed -eq 0 ] || { tail -n 5 "$work"/*.log; exit 1; }
