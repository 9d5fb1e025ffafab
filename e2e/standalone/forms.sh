#!/bin/bash
# Applications whose kernels run in preemptible forms, beside a busy client of a higher level that evicts them all the
# time: every value is right, order is kept, and evictions did happen. The compile service is the agent's own.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare vector-add matrix-multiply reduction long-block kernels stream-order burst filler
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=50
mkdir "$work/cache"
echo "compile: {mode: ptx, cacheDir: $work/cache}" >>"$work/agent.yaml"

check "the agent is up" start_agent
start_busy

# A counter of the low client, while it runs.
of_low() { status "[.clients[] | select(.level == 0) | .$1] | add // 0"; }
was_evicted() { [ "$(of_low evictions)" -gt 0 ]; }

# The agent reports an eviction of the program PID, before it ends and within 20 s.
sees_eviction() { # PID
    local until=$((SECONDS + 20))
    until was_evicted; do
        kill -0 "$1" 2>/dev/null && [ $SECONDS -lt $until ] || return 1
        sleep 0.1
    done
}

# Runs a program in a form: its values have to be right, and an eviction has to be seen if it can have any. A
# program that can be stopped runs until then. On a busy machine a short one may end before; it gets three tries.
in_form() { # FORM EVICTED PROGRAM ARGUMENTS...
    local form=$1 evicted=$2 name=$3 low seen
    shift 2
    for _ in 1 2 3; do
        rm -f "$work/enough"
        if [ "$form" = auto ]; then
            governed 65534 "$@" >"$work/$name-$form.log" 2>&1 &
        else
            WEIR_FORM=$form governed 65534 "$@" >"$work/$name-$form.log" 2>&1 &
        fi
        low=$!
        clients[$low]=$name
        [ "$evicted" != evicted ] || sees_eviction "$low"
        seen=$?
        touch "$work/enough"
        check "$name, $form: every value is right" wait "$low"
        unset "clients[$low]"
        [ $seen -ne 0 ] || break
    done
    [ "$evicted" != evicted ] || report $seen "$name, $form: it is evicted"
}

for form in persistent resumable sliced; do
    evicted=$([ $form = sliced ] || echo evicted)
    until=(--seconds 20 --stop-file "$work/enough")
    in_form $form evicted vector-add "${until[@]}"
    # Evictions between two slices that the worker does not see are not counted.
    [ $form = sliced ] && until=(--seconds 1)
    in_form $form "$evicted" matrix-multiply "${until[@]}"
    in_form $form "$evicted" reduction "${until[@]}"
    in_form $form "$evicted" long-block --size 12 "${until[@]}"
    in_form $form "$evicted" kernels --repeat 3 --seconds 0.2
    for seed in 1 $RANDOM; do in_form $form "$evicted" stream-order --seed "$seed" --seconds 3; done
done
# Tickets of several blocks, drawn ahead; smaller ones at the end.
export WEIR_CHUNK=5
in_form persistent evicted matrix-multiply --size 64 --seconds 20 --stop-file "$work/enough"
in_form persistent evicted kernels --repeat 3 --seconds 0.2
# There must be more tickets than workers, because each worker starts with one.
WEIR_CHUNK=2 in_form persistent evicted stream-order --seed 7 --seconds 3
unset WEIR_CHUNK
in_form auto "" kernels --repeat 3 --seconds 0.2
in_form auto "" vector-add --seconds 2

# Nobody knows this kernel's time, but the first launch can leave: it waits for its forms, here as long as it takes.
begins_in_form() {
    WEIR_FIRST_LAUNCH_MS=10000 WEIR_LOG=debug governed 65534 filler --waves 100 --seconds 0.2 >"$work/first.log" 2>&1 &&
        grep -q "nobody has launched it yet" "$work/first.log" && ! grep -q "were not ready" "$work/first.log"
}
check "a first launch is in a form" begins_in_form

# A client that is killed around its eviction leaves nothing.
for _ in 1 2 3; do
    WEIR_FORM=persistent governed 65534 filler --waves 10 --seconds 60 >"$work/filler.log" 2>&1 &
    low=$!
    clients[$low]=filler
    check "the victim is evicted" eventually 20 was_evicted
    kill -KILL "$(program_of $low)"
    wait $low 2>/dev/null
    unset "clients[$low]"
    nobody_low() { [ "$(status '[.clients[] | select(.level == 0)] | length')" = 0 ]; }
    check "and killed" eventually 5 nobody_low
done
check "the GPU is free for the next" governed 65534 vector-add

stop_busy
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
