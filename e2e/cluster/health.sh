# Sourced after work.sh: broken GPUs, and who is told.
# shellcheck shell=bash

# gpu_of NAME: the index of the pod's simulated GPU.
gpu_of() {
    local gpu
    gpu=$(client "$1" .gpu)
    echo $((16#${gpu: -2}))
}

# inject GPU FILE [TEXT]: writes a file that makes the GPU sick (e2e/simcuda/README.md).
inject() {
    echo "${3:-}" > "$W/tmpfs/sim/gpu$1/$2"
}

# A GPU's health in the agent's status.
health_of() {
    status | jq -r --arg suffix "$(printf %02x "$1")" '.gpus[] | select(.gpu | endswith($suffix)) | .health'
}

health_is() {
    [ "$(health_of "$1")" = "$2" ]
}

# has_event KIND NAME REASON [WORDS]: the object has such an event.
has_event() {
    api GET "/api/v1/events?fieldSelector=involvedObject.kind=$1,involvedObject.name=$2,reason=$3" |
        jq -e --arg words "${4:-}" '.items | any(.message | contains($words))' > /dev/null
}

hears() {
    until_ok 20 has_event "$@" && return
    echo "# no event $3 on $1 $2; there are:"
    api GET /api/v1/events | jq -r '.items[] | "\(.involvedObject.kind) \(.involvedObject.name): \(.reason) \(.message)"' |
        grep -i gpu | tail -n 8 | sed 's/^/# /'
    return 1
}

# since BEGAN: the seconds since BEGAN, a result of `date +%s%3N`.
since() {
    local ms=$(($(date +%s%3N) - $1))
    printf '%d.%03d' $((ms / 1000)) $((ms % 1000))
}

unhealthy() {
    local gpu began sick
    starts patient 20 "$(worker patient)" || return 1
    gpu=$(gpu_of patient)
    began=$(date +%s%3N)
    inject "$gpu" xid 74
    until_ok 20 allocatable_is $(((SIM_GPUS - 1) * 100)) || return 1
    sick=$(since "$began")
    hears Node "$NODE" GPUUnhealthy 'XID 74' && hears Pod patient GPUUnhealthy 'XID 74' || return 1
    # It recovers by itself $RECOVERY_S seconds after the last error.
    until_ok 30 allocatable_is $((SIM_GPUS * 100)) || return 1
    echo "# an XID took the GPU out of the node's resources in $sick s; back $(since $((began + RECOVERY_S * 1000))) s after it recovered"
    hears Node "$NODE" GPUHealthy && hears Pod patient GPUHealthy || return 1
    # The pod ran on all the time.
    finishes patient
}

# Some errors need a reset of the GPU. A GPU that is lost and comes back simulates it.
reset_gpu() {
    inject 1 xid 95
    until_ok 20 allocatable_is $(((SIM_GPUS - 1) * 100)) &&
        until_ok 10 health_is 1 'XID 95 (uncontained memory error), until it is reset' || return 1
    sleep $((RECOVERY_S + 1))
    allocatable_is $(((SIM_GPUS - 1) * 100)) || return 1
    inject 1 lost
    until_ok 10 health_is 1 'the driver has lost it' && until_ok 10 grep -q 'GPU 1 does not answer' "$W/plugin.log" || return 1
    rm "$W/tmpfs/sim/gpu1/lost"
    until_ok 30 allocatable_is $((SIM_GPUS * 100)) && until_ok 10 health_is 1 good || return 1
    # Uncorrected memory errors, and a recovery that the driver requests.
    inject 0 ecc 2
    until_ok 10 health_is 0 'uncorrected memory errors' && until_ok 30 health_is 0 good || return 1
    inject 0 recovery 1
    until_ok 10 health_is 0 'the driver wants a reset of the GPU' || return 1
    inject 0 recovery 0
    until_ok 10 health_is 0 good && until_ok 20 allocatable_is $((SIM_GPUS * 100))
}

# label_is NAME VALUE: null is none.
label_is() {
    [ "$(api GET "/api/v1/nodes/$NODE" | jq -r ".metadata.labels[\"weir.dev/gpu.$1\"]")" = "$2" ]
}

labels() {
    until_ok 10 label_is count $SIM_GPUS && label_is product Weir-Simulated-GPU && label_is cuda-version 13.0 &&
        label_is sharing-mode timeslice && label_is weir-version "$(status | jq -r .version)" || return 1
    # A wrong label of ours, and a label of somebody else.
    api PATCH "/api/v1/nodes/$NODE" '{"metadata": {"labels": {"weir.dev/gpu.mig": "true", "weir.dev/other": "x"}}}' \
        application/merge-patch+json > /dev/null || return 1
    stop agent
    start_agent
    until_ok 20 label_is mig null && label_is count $SIM_GPUS &&
        api GET "/api/v1/nodes/$NODE" | jq -e '.metadata.labels["weir.dev/other"] == "x"' > /dev/null
}

# bypass_at_work NAME
bypass_at_work() {
    pod_log "$1" | grep -q 'at work'
}

# A process that uses the driver without libweir is reported; a governed one is not.
bypassed() {
    pod sneak 10 'exec bypass /shared/sneak.stop' && until_ok 20 bypass_at_work sneak &&
        starts proper 10 "$(worker proper)" || return 1
    hears Pod sneak UnregisteredGPUProcess 'without libweir' || return 1
    phase_is sneak Running && ! has_event Pod proper UnregisteredGPUProcess || return 1
    touch "$W/shared/sneak.stop"
    succeeds sneak 20 && finishes proper
}

# The same with a configuration that kills it.
bypass_killed() {
    stop agent
    sed -i 's/action: report/action: kill/' "$W/agent.yaml"
    start_agent
    until_ok 10 agent_ready && starts proper 10 "$(worker proper)" &&
        pod sneak 10 'exec bypass /shared/sneak.stop' && until_ok 60 phase_is sneak Failed || return 1
    hears Pod sneak UnregisteredGPUProcessKilled && [ "$(pod_get sneak .status.containerStatuses[0].state.terminated.exitCode)" = 137 ] || return 1
    sed -i 's/action: kill/action: report/' "$W/agent.yaml"
    unharmed "$(containers proper)" proper && finishes proper
}
