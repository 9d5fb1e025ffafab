#!/bin/bash
# Weir on a real kubelet, with simulated GPUs: pods get shares and levels, and keep them when parts are
# restarted. WEIR_SKIP_KUBELET=1 leaves it out; KEEP=1 leaves the node running at the end; arguments
# are the names of the cases to run, all by default.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD/e2e/cluster
CGROUP=weir-kubelet
W=${W:-$PWD/${B:-build}/kubelet}
# shellcheck source-path=SCRIPTDIR source=../cluster.sh
. "$here/cluster.sh"
# shellcheck source-path=SCRIPTDIR source=../weir.sh
. "$here/weir.sh"
# shellcheck source-path=SCRIPTDIR source=../work.sh
. "$here/work.sh"
# shellcheck source-path=SCRIPTDIR source=../gpus.sh
. "$here/gpus.sh"
# shellcheck source-path=SCRIPTDIR source=../health.sh
. "$here/health.sh"
# shellcheck source-path=SCRIPTDIR source=../said.sh
. "$here/said.sh"
# shellcheck source-path=SCRIPTDIR source=../dra.sh
. "$here/dra.sh"
MEMORY_DEFAULT=share

clients_seen() {
    grep -c 'client .* of GPU-.* libweir [0-9]' "$W/agent.log"
}

share() {
    local before
    before=$(clients_seen)
    # shellcheck disable=SC2016
    pod share 30 'set -e; vector-add; matrix-multiply; reduction; long-block; echo gpu $WEIR_GPU' || return 1
    succeeds share 60 || return 1
    [ "$(pod_log share | grep -c ': ok')" = 4 ] && pod_log share | grep -q '^gpu GPU-' &&
        [ "$(clients_seen)" = $((before + 4)) ]
}

refused() {
    pod greedy 150 true || return 1
    until_ok 60 phase_is greedy Failed
    [ "$(pod_get greedy .status.reason)" = UnexpectedAdmissionError ] &&
        pod_get greedy .status.message | grep -q '150 shares do not fit on one GPU' && return
    explain greedy
    return 1
}

# LOW keeps the GPU full. Work of HIGH closes LOW's gates, never HIGH's.
guaranteed() {
    local waits
    starts low 20 "$(filler low)" || return 1
    has_level low 0 || return 1
    works low || return 1
    waits=$(client low .waits)
    qos=guaranteed starts high 20 "$(worker high)" || return 1
    has_level high 2 || return 1
    until_ok 20 more low .waits $((waits + 3)) || {
        echo "# LOW is not held: $(status | jq -c .clients)"
        return 1
    }
    [ "$(client high .gatesClosed)" = 0 ] && [ "$(client high .waits)" = 0 ] || {
        echo "# HIGH was held: $(status | jq -c .clients)"
        return 1
    }
    finishes high && works low && finishes low
}

annotation() {
    qos=guaranteed annotation=low starts humble 10 "$(worker humble)" &&
        namespace=trusted annotation=critical starts chosen 10 "$(worker chosen)" &&
        annotation=critical starts pretender 10 "$(worker pretender)" || return 1
    has_level humble 0 && has_level chosen 3 && has_level pretender 0 || return 1
    client pretender .reason | grep -q refused || return 1
    # Edits of running pods.
    pod_annotate humble null && has_level humble 2 &&
        namespace=trusted pod_annotate chosen '"high"' && has_level chosen 2 &&
        pod_annotate pretender '"normal"' && has_level pretender 0 &&
        finishes humble pretender && namespace=trusted finishes chosen
}

# noted NAME WHAT JSON FILTER VALUE: edits a running pod's annotation and prints how soon the agent has seen it.
noted() {
    local began=${EPOCHREALTIME/./}
    pod_note "$1" "$2" "$3" && until_ok 10 client_is "$1" "$4" "$5" || {
        echo "# $2 $3: $4 is $(client "$1" "$4"), not $5"
        return 1
    }
    echo "# $2 $3: seen after $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
}

client_is() {
    [ "$(client "$1" "$2")" = "$3" ]
}

# Edits of level, weight, objective and limit, also to values that are refused.
live() {
    starts edited 30 "$(worker edited)" && client_is edited .share 30 &&
        noted edited priority '"low"' .level 0 &&
        noted edited weight '"7"' .share 7 &&
        noted edited weight '"90"' .weightRefused 90 && client_is edited .share 30 &&
        noted edited latency-slo '"5ms"' .latencySloSeconds 0.005 &&
        noted edited latency-slo null .latencySloSeconds null &&
        noted edited memory '"100Mi"' .memoryLimit $((100 << 20)) &&
        noted edited memory '"900Mi"' .memoryRefused 900Mi && client_is edited .memoryLimit $((306 << 20)) &&
        finishes edited
}

# has NAME MIB: it has this much memory and was refused more.
has() {
    local have refusals
    read -r have refusals < "$W/shared/$1.state" && [ "$have" = "$2" ] && [ "$refusals" -gt 0 ]
}

# refused_since NAME REFUSALS
refused_since() {
    local have refusals
    read -r have refusals < "$W/shared/$1.state" && [ "$refusals" -gt "$2" ]
}

# 30 shares of the GPU's 1024 MiB are 306 MiB. A limit below the memory in use frees nothing.
memory() {
    local have refusals
    export namespace=trusted
    starts hoard 30 "exec hoard --state-file /shared/hoard.state --free-file /shared/hoard.free \
        --stop-file /shared/hoard.stop --ready-file /shared/hoard.ready" && until_ok 10 has hoard 304 &&
        noted hoard memory '"400Mi"' .memoryLimit $((400 << 20)) && until_ok 10 has hoard 392 &&
        noted hoard memory '"100Mi"' .memoryLimit $((100 << 20)) &&
        until_ok 10 grep -q "pod 'hoard'.* has 394 MiB .* more than its limit" "$W/agent.log" || return 1
    read -r have refusals < "$W/shared/hoard.state"
    until_ok 10 refused_since hoard $((refusals + 3)) && has hoard 392 && touch "$W/shared/hoard.free" &&
        until_ok 10 has hoard 96 && noted hoard memory null .memoryLimit $((306 << 20)) &&
        until_ok 10 has hoard 304 && finishes hoard || return 1
    unset namespace
}

# On a node without an agent, the first pod with a limit gets no memory before an agent knows the limit.
early() {
    stop agent
    find "$W/tmpfs/run" -name memory-limited -delete
    sed -i 's/^memoryDefault: .*/memoryDefault: none/' "$W/agent.yaml"
    memory=100Mi pod early 30 "exec hoard --state-file /shared/early.state \
        --free-file /shared/early.free --stop-file /shared/early.stop" &&
        until_ok 20 phase_is early Running && sleep 3 || return 1
    [ ! -e "$W/shared/early.state" ] || {
        echo "# without an agent it has '$(cat "$W/shared/early.state")'"
        return 1
    }
    start_agent
    until_ok 30 has early 96 && finishes early || return 1
    stop agent
    sed -i "s/^memoryDefault: .*/memoryDefault: $MEMORY_DEFAULT/" "$W/agent.yaml"
    start_agent
    until_ok 10 agent_ready
}

# A static pod: the UID in its cgroup differs from the one in the API.
static() {
    rm -f "$W/shared/fixed".*
    qos=guaranteed annotation=low static_pod fixed 10 "$(worker fixed)" && until_ok 20 ready fixed &&
        has_level "fixed-$NODE" 0 && touch "$W/shared/fixed.stop" && succeeds "fixed-$NODE" 20
}

# Two pods at work for the restarts.
pair() {
    starts low 20 "$(filler low)" && qos=guaranteed starts high 20 "$(worker high)" &&
        has_level low 0 && has_level high 2
}

registrations() {
    grep -c 'the kubelet watches' "$W/plugin.log"
}

registered_since() {
    [ "$(registrations)" -gt "$1" ]
}

restart_kubelet() {
    local noted clients registered
    pair || return 1
    noted=$(containers low high)
    clients=$(status | jq -c '[.clients[].client] | sort')
    registered=$(registrations)
    stop kubelet
    start_kubelet
    until_ok 60 registered_since "$registered" && until_ok 30 allocatable_is $((SIM_GPUS * 100)) || return 1
    unharmed "$noted" low high && [ "$(status | jq -c '[.clients[].client] | sort')" = "$clients" ] &&
        pod after-kubelet 10 vector-add && succeeds after-kubelet 30 && finishes low high
}

restart_plugin() {
    local noted
    pair || return 1
    noted=$(containers low high)
    stop plugin KILL
    until_ok 20 allocatable_is 0 || return 1
    start_plugin
    until_ok 30 allocatable_is $((SIM_GPUS * 100)) || return 1
    unharmed "$noted" low high && pod after-plugin 10 vector-add && succeeds after-plugin 30 &&
        finishes low high
}

restart_agent() {
    local noted bits
    pair || return 1
    noted=$(containers low high)
    bits=$(status | jq -c '[.clients[] | {pod, level, bit}] | sort')
    stop agent KILL
    start_agent
    until_ok 10 agent_ready && has_level low 0 && has_level high 2 || return 1
    [ "$(status | jq -c '[.clients[] | {pod, level, bit}] | sort')" = "$bits" ] || {
        echo "# clients were $bits, are $(status | jq -c .clients)"
        return 1
    }
    unharmed "$noted" low high && finishes low high
}

# A pod of a higher level dies in the middle of its kernels: its demand bit and its slots are free within a second.
killed() {
    local pid end before
    starts low 20 "$(filler low)" && qos=guaranteed starts high 20 "$(filler high)" &&
        has_level high 2 && until_ok 10 held low || return 1
    [ "$(demand)" != 0 ] && pid=$(pod_pid high) && before=$(client low .launches) || return 1
    kill -KILL "$pid" || return 1
    end=$(($(date +%s%3N) + 1000))
    until gone high && more low .launches "$before" && [ "$(demand)" = 0 ]; do
        [ "$(date +%s%3N)" -lt "$end" ] || {
            echo "# a second after the kill: $(status | jq -c .)"
            return 1
        }
    done
    until_ok 20 phase_is high Failed && works low && finishes low
}

# How many bits are set in all demand words.
demand() {
    status | jq '[.gpus[].demand[]] | add'
}

# Without the API server the agent takes the QoS class from the cgroup, and corrects the level later.
away() {
    namespace=trusted annotation=high starts chosen 10 "$(worker chosen)" &&
        namespace=trusted has_level chosen 2 || return 1
    stop apiserver KILL
    # The agent keeps what it knew.
    sleep 1
    level_is chosen 2 || return 1
    stop agent
    start_agent
    until_ok 10 agent_ready
    until_ok 10 by_qos_class || {
        echo "# without an API server: $(status | jq -c .clients)"
        return 1
    }
    start_apiserver
    must 120 apiserver_ready
    until_ok 60 level_is chosen 2 && namespace=trusted finishes chosen
}

by_qos_class() {
    status | jq -e '.clients | length == 1 and .[0].level == 0'
}

intruder() {
    pod intruder 10 'exec intruder' && qos=guaranteed pod insider 10 'exec intruder' &&
        succeeds intruder 20 && succeeds insider 20
}

cases=(
    "packed|parts are packed, whole GPUs next to them, a pair on one NUMA node"
    "spread|parts are spread by configuration, and one GPU's demand does not touch another's"
    "nvml|NVML in a pod shows its own GPU, limit and process"
    "cdi|GPUs come by the Container Device Interface, where configured"
    "dra|GPUs come by claims: by template, by model, and by the first that is available"
    "dra_beside|a GPU that claims and shares divide is never oversold"
    "dra_restarts|kubelet, plugin and agent are restarted under pods with claims"
    "dra_health|a sick GPU leaves the slice of claims, and comes back"
    "share|a pod gets its share and sees the simulated GPU, through libweir"
    "refused|a request over one GPU is refused, and the pod's status says why"
    "guaranteed|a Guaranteed pod is never held; a BestEffort pod is held for it"
    "annotation|the annotation overrides the QoS class where it is allowed, and edits take effect"
    "live|edits of a running pod's annotations change its weight, objective and limit of memory"
    "memory|a pod's memory limit comes from its share or its annotation"
    "early|a pod that starts without an agent waits for its memory limit"
    "static|a static pod has the level of its mirror pod"
    "restart_kubelet|the kubelet is restarted under running pods"
    "restart_plugin|the plugin is killed and restarted under running pods"
    "restart_agent|the agent is killed and restarted under running pods"
    "killed|a pod killed in the middle of its kernels frees what it held within a second"
    "away|without the API server levels come from the QoS class, and are corrected later"
    "annotations|each annotation that does not hold has an event, a metric and an explanation"
    "requests|so has each request that is refused"
    "mistakes|and a mistake in the configuration of a running agent"
    "intruder|a container cannot write a read-only page, truncate one, or remove libweir or the socket"
    "unhealthy|an XID makes a GPU unhealthy and it recovers; node and pods get events"
    "reset_gpu|an uncontained memory error needs a reset; memory errors and the driver's recovery action count"
    "labels|the node gets labels of its GPUs and loses wrong ones"
    "bypassed|a process that uses the GPU without libweir is reported"
    "bypass_killed|and killed if the configuration says so"
)

cluster_or_skip "real kubelet"
cluster_apart "$0" "$@"
cluster_trap

fetched=${XDG_CACHE_HOME:-$HOME/.cache}/weir/containerd
[ ! -x "$fetched/containerd" ] || CONTAINERD=$fetched
cluster_up "$B"/bin/{nvml-view,nvml-view-linked,vector-add,matrix-multiply,reduction,long-block,burst,filler,hoard,intruder,bypass} \
    "$B"/lib/libweir.so "$B"/simcuda/{libcuda.so.1,libnvidia-ml.so.1}
weir_up
failed=0
for case in "${cases[@]}"; do
    name=${case%%|*}
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    began=$SECONDS
    "$name"
    outcome=$?
    if [ $outcome -eq 77 ]; then
        echo "ok - kubelet: ${case#*|} # SKIP no containerd with it here"
    elif [ $outcome -eq 0 ]; then
        echo "ok - kubelet: ${case#*|} ($((SECONDS - began)) s)"
    else
        echo "not ok - kubelet: ${case#*|}"
        failed=1
        for log in agent plugin; do tail -n 8 "$W/$log.log" | sed "s/^/# $log: /"; done
    fi
    clear_pods
done
exit $failed
