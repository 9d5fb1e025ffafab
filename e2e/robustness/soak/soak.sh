#!/bin/bash
# Soak and chaos: pods on a real kubelet share simulated GPUs, while clients, pods, agent, plugin, kubelet and
# API server are killed, disks are full, the clock jumps and sockets are slow. The README lists what must hold and is
# checked all the time. DURATION (30) seconds, GPUS (2), PODS (8), HOSTILES (3); SEED repeats a plan.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
duration=${DURATION:-30} gpus=${GPUS:-2} pods=${PODS:-8} hostiles=${HOSTILES:-3}
slots=$((pods + hostiles))
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
here=$PWD/e2e/cluster
CGROUP=weir-soak
W=${W:-$PWD/${B:-build}/soak}
# shellcheck source-path=SCRIPTDIR source=../../cluster/cluster.sh
. "$here/cluster.sh"
# shellcheck source-path=SCRIPTDIR source=../../cluster/weir.sh
. "$here/weir.sh"
# shellcheck source-path=SCRIPTDIR source=load.sh
. e2e/robustness/soak/load.sh
# shellcheck source-path=SCRIPTDIR source=chaos.sh
. e2e/robustness/soak/chaos.sh
SIM_GPUS=$gpus SIM_BLOCK_US=20000
metrics_port=26399
pause=$((duration / 20 < 90 ? duration / 20 : 90)) # of jobs, when they are done
violations=0

violation() {
    violations=$((violations + 1))
    echo "# violation at $((SECONDS - began)) s: $*"
    mkdir -p "$kept"
    status > "$kept/status-$violations.json" 2> /dev/null
    tail -n 200 "$W/agent.log" > "$kept/agent-$violations.log"
}

# With a wall clock that the test can move.
start_agent() {
    start agent env LD_PRELOAD="$PWD/$B/lib/librealtime.so" REALTIME_FILE="$W/realtime" \
        "$B/bin/weir-agent" --config "$W/agent.yaml"
}

small_disks() {
    mkdir -p "$W/tmpfs/state" "$W/cache"
    mount -t tmpfs -o size=4m,mode=700 weir-soak "$W/tmpfs/state" && mount -t tmpfs -o size=2m,mode=700 weir-soak "$W/cache"
}

soak_up() {
    install_weir
    small_disks || die "cannot mount a tmpfs"
    sed -i "s/^metrics:.*/metrics: {address: \"127.0.0.1:$metrics_port\"}/; s/^logLevel:.*/logLevel: info/" "$W/agent.yaml"
    echo "compile: {cacheDir: $W/cache, cacheMiB: 1}" >> "$W/agent.yaml"
    head -c 4096 /dev/zero > "$W/realtime"
    grant_agent > /dev/null || die "the API server refused the agent's role"
    start_agent
    start_plugin
    must 20 agent_ready
    must 20 allocatable_is $((gpus * 100))
}

# Parts that were not killed live, and the agent's status is right.
look() {
    local part state line
    for part in agent plugin kubelet; do
        if [ -z "${away[$part]:-}" ] && stopped "$part"; then
            violation "$part died: $(tail -n 3 "$W/$part.log")"
            "start_$part"
            disturbed=$SECONDS
        fi
    done
    [ -z "${away[agent]:-}" ] || return 0
    if ! state=$(status 2>&1); then
        # Slow connections occupy all of the control socket's slots for 5 s.
        until_ok 30 agent_ready || violation "the agent does not answer: $state"
        return 0
    fi
    echo "$state" | e2e/robustness/soak/check.py "$W/state.json" "$(pid_of agent)" $((SECONDS - disturbed)) "$W/samples" > "$W/found" ||
        violation "check.py failed"
    while read -r line; do
        violation "$line"
    done < "$W/found"
    curl -s -m 20 -o "$W/metrics" "http://127.0.0.1:$metrics_port/metrics" || violation "no metrics"
}

descriptors() {
    find "/proc/$(pid_of agent)/fd" -mindepth 1 2> /dev/null | wc -l
}

resident() {
    awk '/^VmRSS/ { print $2 }' "/proc/$(pid_of agent)/status"
}

soak() {
    local at kind argument next_look=0 end
    e2e/robustness/soak/plan.py "$seed" "$duration" "$slots" > "$W/plan"
    began=$SECONDS end=$((SECONDS + duration))
    exec 8< "$W/plan"
    read -r at kind argument <&8
    while [ $SECONDS -lt $end ]; do
        run_later
        while [ -n "$at" ] && [ $((SECONDS - began)) -ge "${at%.*}" ]; do
            echo "$((SECONDS - began)) $kind $argument" >> "$W/events"
            case $kind in
            client | pod) ;;
            *) disturbed=$SECONDS ;;
            esac
            "do_$kind" "$argument"
            read -r at kind argument <&8 || at=
        done
        if [ $SECONDS -ge $next_look ]; then
            upkeep || true # the API server is away
            look
            next_look=$((SECONDS + 3))
        fi
        sleep 0.3
    done
    while [ ${#jobs_later[@]} -gt 0 ]; do
        run_later
        sleep 0.3
    done
    exec 8<&-
}

# As in tap.sh; a failure is a violation, too.
report() { # STATUS WHAT
    if [ "$1" -eq 0 ]; then
        echo "ok - soak: $2"
    else
        echo "not ok - soak: $2"
        violation "$2"
    fi
}

nobody() { [ "$(status | jq '.clients | length')" = 0 ]; }
no_demand() { [ "$(status | jq '[.gpus[].demand[]] | add')" = 0 ]; }
no_accounts() { [ -z "$(ls "$W/tmpfs/state/memory" 2> /dev/null)" ]; }
few_descriptors() { [ "$(descriptors)" -le $((first_descriptors + 4)) ]; }

# All pods end and leave nothing.
aftermath() {
    stop_load
    until_ok 60 no_containers
    report $? "every container has ended"
    until_ok 5 nobody
    report $? "the agent has no clients"
    until_ok 5 no_demand
    report $? "no demand bit is left"
    until_ok 20 no_accounts # swept each 10 s
    report $? "no account of memory is left"
    until_ok 20 few_descriptors
    report $? "the agent has the descriptors that it began with ($first_descriptors, now $(descriptors))"
    [ "$(resident)" -le $((first_resident + 16384)) ]
    report $? "and about the memory ($first_resident KiB, now $(resident))"
    pod last 100 'vector-add' && until_ok 60 phase_is last Succeeded
    report $? "the GPUs are free"
    e2e/robustness/soak/slopes.py "$W/samples" | sed 's/^/# /'
    report "${PIPESTATUS[0]}" "the agent's memory is flat"
}

cluster_or_skip soak
cluster_apart "$0" "$@"
renice -n 10 $$ > /dev/null
kept=$PWD/${B:-build}/soak-violations
rm -rf "$kept"
cluster_trap
echo "# SEED=$seed DURATION=$duration GPUS=$gpus PODS=$pods HOSTILES=$hostiles"
cluster_up "$B"/bin/{vector-add,matrix-multiply,reduction,burst,filler,stream-order,memory-storm,intruder,hostile} \
    "$B"/lib/libweir.so "$B"/simcuda/{libcuda.so.1,libnvidia-ml.so.1}
soak_up
first_descriptors=$(descriptors) first_resident=$(resident)
soak
aftermath
echo "# $generation pods, $n_attacks of them hostile, $n_ended ended, $n_refused refused without plugin or kubelet; events: $(
    cut -d' ' -f2 "$W/events" | sort | uniq -c | awk '{ printf "%s %s, ", $1, $2 }')looks: $(wc -l < "$W/samples")"
echo "# seconds at the longest: $(jq -c .longest "$W/state.json")"
echo "soak: $duration s, $kills kills, $violations violations"
[ $violations -eq 0 ]
