# Sourced after cluster.sh: Weir on that node (agent and plugin as plain processes, eight simulated
# GPUs), and pods that use it.
# shellcheck shell=bash

RESOURCE=weir.dev/gpu-share
SIM_GPUS=8
SIM_SMS=2
RECOVERY_S=3      # after an error of a GPU; a minute by default
SIM_BLOCK_US=2000 # a block sleeps so long, so that the figures do not depend on the machine

# The simulated GPUs. Files that pods mount stay in place while the pods run, as on a real node.
install_driver() {
    mkdir -p "$W"/{host/driver,shared,tmpfs}
    mount -t tmpfs weir-e2e "$W/tmpfs" || die "cannot mount a tmpfs"
    mkdir "$W"/tmpfs/{run,sim}
    cp -L "$B"/simcuda/{libcuda.so.1,libnvidia-ml.so.1} "$W/host/driver/"
    chmod 777 "$W/tmpfs/sim" "$W/shared"
    printf '%s=%s\n' gpus $SIM_GPUS numa 2 sms $SIM_SMS block_us $SIM_BLOCK_US > "$W/tmpfs/sim/config"
    export WEIR_SIM_DIR=$W/tmpfs/sim
}

install_weir() {
    install_driver
    cp -L "$B"/lib/libweir{,-nvml}.so "$W/host/"
    printf '%s\n' "$W"/host/libweir{,-nvml}.so > "$W/host/ld.so.preload"
    kubeconfig_for token-agent > "$W/agent.kubeconfig"
    cat > "$W/agent.yaml" << Y
socket: $W/tmpfs/run/agent.sock
stateDir: $W/tmpfs/state
metrics: {address: "127.0.0.1:9477"}
control: {socket: $W/control.sock}
kubernetes: {enabled: true, kubeconfig: $W/agent.kubeconfig, nodeName: $NODE, checkpoint: $PLUGINS/kubelet_internal_checkpoint, claims: $W/dra/claims.json}
levels:
  raiseNamespaces: [trusted]
memoryDefault: ${MEMORY_DEFAULT:-none}
health: {recoverySeconds: $RECOVERY_S}
unregistered: {action: report, afterSeconds: 2}
nvml: $W/host/driver/libnvidia-ml.so.1
logLevel: debug
Y
    cat > "$W/plugin.yaml" << Y
resourceName: $RESOURCE
logLevel: debug
pluginDir: $PLUGINS
agentSocketDir: $W/tmpfs/run
gpuSockets: true
library: {hostPath: $W/host/libweir.so, nvmlPath: $W/host/libweir-nvml.so}
preload: {hostPath: $W/host/ld.so.preload}
driver: {mount: always, libraries: $W/host/driver, nvml: $W/host/driver/libnvidia-ml.so.1}
cdi: {dir: $W/cdi}
health: {recoverySeconds: $RECOVERY_S}
container:
  mounts:
  - {hostPath: $W/tmpfs/sim, containerPath: /dev/weir-sim, readOnly: false}
  - {hostPath: $W/shared, containerPath: /shared, readOnly: false}
  env: {WEIR_SIM_DIR: /dev/weir-sim, WEIR_LOG: info}
Y
}

# The agent's permissions, as in the chart.
grant_agent() {
    api POST /apis/rbac.authorization.k8s.io/v1/clusterroles '{"metadata": {"name": "weir-agent"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}]}' &&
        api POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings '{"metadata": {"name": "weir-agent"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "weir-agent"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "weir-agent"}]}' &&
        api POST /api/v1/namespaces '{"metadata": {"name": "trusted"}}'
}

start_agent() {
    start agent "$B/bin/weir-agent" --config "$W/agent.yaml"
}

start_plugin() {
    start plugin "$B/bin/weir-device-plugin" --config "$W/plugin.yaml"
}

agent_ready() {
    status > /dev/null
}

allocatable_is() {
    [ "$(api GET "/api/v1/nodes/$NODE" | jq -r ".status.allocatable[\"$RESOURCE\"]")" = "$1" ]
}

weir_up() {
    install_weir
    grant_agent > /dev/null || die "the API server refused the agent's role"
    start_agent
    start_plugin
    must 20 agent_ready
    must 20 allocatable_is $((SIM_GPUS * 100))
}

# The agent's status as JSON.
status() {
    timeout 5 "$B/bin/weirctl" --socket "$W/control.sock" status --json
}

# Pods

# pod_manifest NAME SHARES COMMAND: with $qos (besteffort, burstable, guaranteed), $annotation, $memory (its
# limit on the GPU), $cpu (its request, optional) and $namespace of the environment.
pod_manifest() {
    jq -n --arg name "$1" --arg shares "$2" --arg command "$3" --arg node "$NODE" \
        --arg image "$IMAGE" --arg resource "$RESOURCE" --arg annotation "${annotation:-}" \
        --arg memory "${memory:-}" --arg qos "${qos:-besteffort}" --arg namespace "${namespace:-default}" \
        --arg cpu "${cpu:-50m}" '
        {cpu: $cpu, memory: "64Mi"} as $amount |
        {
            apiVersion: "v1",
            kind: "Pod",
            metadata: {name: $name, namespace: $namespace,
                annotations: ((if $annotation == "" then {} else {"weir.dev/priority": $annotation} end) +
                    (if $memory == "" then {} else {"weir.dev/memory": $memory} end))},
            spec: {nodeName: $node, hostNetwork: true, restartPolicy: "Never", enableServiceLinks: false,
                terminationGracePeriodSeconds: 0,
                containers: [{name: "main", image: $image, imagePullPolicy: "Never",
                    command: ["sh", "-c", $command],
                    resources: {
                        requests: (if $qos == "burstable" then $amount else {} end),
                        limits: ({($resource): $shares} + if $qos == "guaranteed" then $amount else {} end)}}]}
        }'
}

pod() {
    api POST "/api/v1/namespaces/${namespace:-default}/pods" "$(pod_manifest "$@")" > /dev/null
}

# The kubelet reads it from a folder and reports it to the API server as NAME-$NODE.
static_pod() {
    pod_manifest "$@" | jq 'del(.spec.nodeName)' > "$W/manifests/.new" &&
        mv "$W/manifests/.new" "$W/manifests/$1.json"
}

# pod_get NAME FILTER
pod_get() {
    api GET "/api/v1/namespaces/${namespace:-default}/pods/$1" | jq -r "$2"
}

phase_is() {
    [ "$(pod_get "$1" .status.phase)" = "$2" ]
}

pod_log() {
    local uid
    uid=$(pod_get "$1" .metadata.uid)
    # Time, stream and a flag stand before each line.
    cut -d' ' -f4- "$W/pods/${namespace:-default}_$1_$uid/main/0.log" 2> /dev/null
}

# succeeds NAME SECONDS: the pod ends well.
succeeds() {
    until_ok "$2" ended "$1"
    phase_is "$1" Succeeded || {
        explain "$1"
        return 1
    }
}

ended() {
    phase_is "$1" Succeeded || phase_is "$1" Failed
}

explain() {
    pod_get "$1" '.status | {phase, reason, message, state: .containerStatuses[0].state, unplaced: [.conditions[]? | select(.status == "False") | .message]}' | sed 's/^/# /'
    pod_log "$1" | tail -20 | sed "s/^/# $1: /"
}

# The host's pid of the container's first process.
pod_pid() {
    local id
    id=$(pod_get "$1" '.status.containerStatuses[0].containerID | sub("^containerd://"; "")')
    ctr_k8s tasks ls | awk -v id="$id" '$1 == id { print $2 }'
}

pod_delete() {
    local name
    for name in "$@"; do
        api DELETE "/api/v1/namespaces/${namespace:-default}/pods/$name?gracePeriodSeconds=0" > /dev/null
    done
}

# pod_note NAME weir.dev/WHAT JSON
pod_note() {
    api PATCH "/api/v1/namespaces/${namespace:-default}/pods/$1" \
        "{\"metadata\": {\"annotations\": {\"weir.dev/$2\": $3}}}" application/merge-patch+json > /dev/null
}

pod_annotate() {
    pod_note "$1" priority "$2"
}

# Removes everything that a case left.
clear_pods() {
    local namespace name
    rm -f "$W"/manifests/*
    for namespace in default trusted; do
        for name in $(api GET "/api/v1/namespaces/$namespace/pods" | jq -r '.items[].metadata.name'); do
            pod_delete "$name"
        done
    done
    until_ok 10 no_containers
    rm -f "$W"/shared/*
}

no_containers() {
    [ -z "$(ctr_k8s tasks ls -q)" ]
}
