#!/bin/bash
# Hostile programs (e2e/robustness/hostile) in pods of a real kubelet, five at once, and what honest pods, the kubelet's
# probe and an agent that is restarted meanwhile see of them. Prints TAP, and last one line of JSON with the times, which
# only the experiment hostile-pods judges. ROUND_SECONDS (3): how long each five are at it. ROUNDS: which attacks, five
# to a round. WEIR_SKIP_KUBELET=1 leaves it out; KEEP=1 leaves the node running at the end.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD/e2e/cluster
CGROUP=weir-hostile
W=${W:-$PWD/${B:-build}/hostile-pods}
# shellcheck source-path=SCRIPTDIR source=../../tap.sh
. e2e/tap.sh
# shellcheck source-path=SCRIPTDIR source=../cluster.sh
. "$here/cluster.sh"
# shellcheck source-path=SCRIPTDIR source=../weir.sh
. "$here/weir.sh"
# shellcheck source-path=SCRIPTDIR source=../work.sh
. "$here/work.sh"
SIM_GPUS=1 # all on one
metrics_port=26499
round_seconds=${ROUND_SECONDS:-3}
rounds=${ROUNDS:-"lease,http,compile,bits,accounts demoted,memory,object,flood,garbage"}
started_ms=() # the agent's starts under attack
restarts=0

# The command of a pod.
hostile() { # ATTACK SECONDS
    # shellcheck disable=SC2016
    echo "WEIR_METRICS_PORT=$metrics_port WEIR_PAUSE=/shared/pause exec hostile /run/weir/agent.sock \$WEIR_GPU $1 $2"
}

# Its container has the level that its attack needs.
start_attack() { # POD ATTACK
    local qos=besteffort memory=
    case $2 in
    forge) qos=burstable ;;
    demoted) qos=guaranteed ;;
    memory) memory=96Mi ;;
    esac
    memory=$memory qos=$qos pod "$1" 5 "$(hostile "$2" 100000) >> /shared/$1.log 2>&1"
}

at_strength() { grep -qs ready "$W/shared/$1.log"; }

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

answers() { "$B/bin/weirctl" --socket "$W/control.sock" health > /dev/null 2>&1; }

# As the kubelet does, but more often. Lines `WHAT MILLISECONDS`, or `failed WHAT`.
watch_agent() {
    local began seconds
    while sleep 0.3; do
        [ -e "$W/shared/pause" ] && continue
        began=${EPOCHREALTIME/./}
        if answers; then
            echo "probe $(((${EPOCHREALTIME/./} - began) / 1000))"
        else
            echo "failed probe"
        fi
        # Without the time that curl takes to start.
        if seconds=$(curl -sf -m 20 -o /dev/null -w '%{time_total}' "http://127.0.0.1:$metrics_port/healthz"); then
            awk -v s="$seconds" 'BEGIN { print "healthz", s * 1000 }'
        else
            echo "failed healthz"
        fi
    done
}

honest_rests() { [ "$(tail -n 1 "$W/shared/honest.log")" = paused ]; }

# A restart in the midst of the attack. Honest pods wait meanwhile; they do not ask an agent that is away.
restart_agent() {
    local began
    touch "$W/shared/pause"
    until_ok 60 honest_rests || return 1
    stop agent KILL
    began=$(now_ms)
    start_agent
    until answers; do
        [ $(($(now_ms) - began)) -lt 60000 ] || return 1
        sleep 0.01
    done
    started_ms+=($(($(now_ms) - began)))
    agent_pid=$(pid_of agent)
    rm -f "$W/shared/pause"
}

same_agent() { [ "$(pid_of agent)" = "$agent_pid" ] || { restarts=$((restarts + 1)) && return 1; }; }
honest_goes_on() { [ "$(wc -l < "$W/shared/honest.log")" -gt "$1" ]; }
honest_lives() { phase_is honest Running && phase_is execs Running; }
demand() { status | jq '[.gpus[].demand[]] | add'; }
no_demand() { [ "$(demand)" = 0 ]; }

# A client above loses its level, and with it the right to hold others back.
demote() { # POD
    works low
    pod_annotate "$1" '"low"'
    until_ok 20 grep -q '^level 0' "$W/shared/$1.log" && works low
    report $? "a client that lost its level holds nobody back"
}

round() { # ATTACK...
    local i=0 attack pods=() seen
    case " $* " in
    *" demoted "*) starts low 10 "$(filler low)" ;;
    esac
    for attack in "$@"; do
        i=$((i + 1))
        start_attack "attack-$i" "$attack"
        pods+=("attack-$i")
    done
    for i in "${pods[@]}"; do until_ok 60 at_strength "$i" || explain "$i"; done
    for i in "${pods[@]}"; do at_strength "$i"; done
    report $? "five pods attack: $*"
    sleep "$round_seconds"
    for ((i = 1; i <= $#; i++)); do
        [ "${!i}" != demoted ] || demote "attack-$i"
    done
    same_agent && honest_lives
    report $? "the agent is the same, and honest pods have what they need"
    restart_agent
    report $? "an agent starts under attack"
    seen=$(wc -l < "$W/shared/honest.log")
    until_ok 20 honest_goes_on $((seen + 3)) && honest_lives
    report $? "and honest pods have it again"
    ! grep -h 'more than the limit' "$W"/shared/attack-*.log
    report $? "no pod has more memory than its limit"
    pod_delete "${pods[@]}"
    [ ! -e "$W/shared/low.ready" ] || finishes low
    until_ok 20 no_demand
    report $? "behind them no demand is left"
    until_ok 20 none_but_honest
    rm -f "$W"/shared/attack-* "$W"/shared/low.*
}

none_but_honest() {
    [ "$(api GET /api/v1/namespaces/default/pods | jq '.items | length')" = 2 ]
}

# figure WHAT FROM TO: median, 99th percentile and worst of lines FROM to TO of all figures, as JSON.
figure() {
    awk -v what="$1" '$1 == what { print $2 }' | sort -n | jq -s '{n: length, median: .[length / 2 | floor],
        p99: .[length * 0.99 | floor], worst: .[-1]} | if .n == 0 then null else . end'
}

figures() {
    local failed_probes
    failed_probes=$(grep -c '^failed' "$W/watch")
    jq -nc --argjson alone "$(figure exec < "$W/alone")" --argjson execs "$(tail -n "+$((n_alone + 1))" "$W/shared/execs.log" | figure exec)" \
        --argjson welcome "$(figure welcome < "$W/shared/honest.log")" --argjson account "$(figure account < "$W/shared/honest.log")" \
        --argjson compile "$(figure compile < "$W/shared/honest.log")" --argjson probe "$(figure probe < "$W/watch")" \
        --argjson healthz "$(figure healthz < "$W/watch")" --argjson start "$(printf 'start %s\n' "${started_ms[@]}" | figure start)" \
        --argjson failures "$failed_probes" --argjson restarts "$restarts" --argjson seconds "$round_seconds" --arg rounds "$rounds" \
        --argjson failed "$failed" '{rounds: $rounds | split(" "), $seconds, $alone, $execs, $welcome, $account, $compile, $probe,
            $healthz, $start, probe_failures: $failures, agent_restarts: $restarts, all_held: ($failed == 0)}'
}

cluster_or_skip "hostile pods"
cluster_apart "$0" "$@"
cluster_trap
cluster_up "$B"/bin/{hostile,filler} "$B"/lib/libweir.so "$B"/simcuda/{libcuda.so.1,libnvidia-ml.so.1}
install_weir
sed -i "s/^metrics:.*/metrics: {address: \"127.0.0.1:$metrics_port\"}/; s/^logLevel:.*/logLevel: info/" "$W/agent.yaml"
grant_agent > /dev/null || die "the API server refused the agent's role"
start_agent
start_plugin
must 20 agent_ready
must 20 allocatable_is 100
agent_pid=$(pid_of agent)

qos=burstable cpu=300m pod honest 10 "$(hostile honest 100000) >> /shared/honest.log 2>&1"
qos=burstable cpu=300m pod execs 10 "$(hostile execs 100000) >> /shared/execs.log 2>&1"
touch "$W/shared/honest.log"
until_ok 60 honest_goes_on 6 && until_ok 60 grep -qs exec "$W/shared/execs.log"
report $? "honest pods are at work"
sleep "$round_seconds"
cp "$W/shared/execs.log" "$W/alone"
n_alone=$(wc -l < "$W/alone")
: > "$W/shared/honest.log"
watch_agent > "$W/watch" &
watcher=$!
for list in $rounds; do
    # shellcheck disable=SC2046
    round $(tr , ' ' <<< "$list")
done
kill "$watcher"
grep -h hostile: "$W"/shared/{honest,execs}.log | sed 's/^/# /'
figures
[ "$failed" -eq 0 ] || for log in agent plugin; do tail -n 8 "$W/$log.log" | sed "s/^/# $log: /"; done
exit "$failed"
