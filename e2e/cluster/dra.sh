# Sourced after health.sh: GPUs by ResourceClaim. A case starts with dra_up and ends with dra_down.
# shellcheck shell=bash
# The file `settings` has `kube` and the ports.
# shellcheck disable=SC2154

DRIVER=gpu.weir.dev
CLAIMS=/apis/resource.k8s.io/v1/namespaces/default

# The plugin's permissions, as in the chart.
grant_plugin() {
    api POST /apis/rbac.authorization.k8s.io/v1/clusterroles '{"metadata": {"name": "weir-plugin"},
        "rules": [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
            {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["create", "patch", "delete"]},
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]}' &&
        api POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings '{"metadata": {"name": "weir-plugin"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "weir-plugin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "weir-plugin"}]}' &&
        api POST /apis/resource.k8s.io/v1/deviceclasses '{"metadata": {"name": "'$DRIVER'"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == \"'$DRIVER'\""}}]}}'
}

offered() {
    api GET /apis/resource.k8s.io/v1/resourceslices | jq -r --arg driver $DRIVER \
        '.items[].spec | select(.driver == $driver) | .devices // [] | .[].name'
}

# offers N: the node offers so many GPUs to claims.
offers() {
    [ "$(offered | wc -l)" = "$1" ]
}

# plugin_offers SHARES LINE...: as plugin_with, and the node then has so many shares.
plugin_offers() {
    local shares=$1
    shift
    [ -f "$W/plugin-plain.yaml" ] || cp "$W/plugin.yaml" "$W/plugin-plain.yaml"
    stop plugin "${signal:-TERM}"
    {
        cat "$W/plugin-plain.yaml"
        printf '%s\n' "$@"
    } > "$W/plugin.yaml"
    start_plugin
    until_ok 30 allocatable_is "$shares"
}

# A case that failed may have left its own.
start_dra_controllers() {
    stop scheduler
    stop controllers
    start_controller scheduler "$port_scheduler" "$kube/kube-scheduler"
    start_controller controllers "$port_controllers" "$kube/kube-controller-manager" --controllers=resourceclaim-controller
}

# GPU 0 is the device plugin's, GPU 1 is shared by both, and the others are for claims.
dra_up() {
    [ -n "$CONTAINERD" ] || return 77
    kubeconfig_for token-plugin > "$W/plugin.kubeconfig"
    api GET /apis/resource.k8s.io/v1/deviceclasses/$DRIVER > /dev/null 2>&1 || grant_plugin > /dev/null || return 1
    start_dra_controllers
    dra_offers && until_ok 30 offers $((SIM_GPUS - 1))
}

dra_offers() {
    plugin_offers 140 "dra: {enabled: true, nodeName: $NODE, kubeconfig: $W/plugin.kubeconfig, registryDir: $W/lib/plugins_registry, stateDir: $W/dra, podResources: $W/lib/pod-resources/kubelet.sock}" \
        'gpus: [{index: 0, shares: 100}, {index: 1, shares: 40}]'
}

# Every claim was unprepared.
dra_down() {
    clear_pods
    api DELETE "$CLAIMS/resourceclaimtemplates" > /dev/null
    until_ok 30 none_prepared || {
        echo "# still prepared: $(cat "$W/dra/claims.json")"
        return 1
    }
    stop scheduler
    stop controllers
    plugin_with
}

none_prepared() {
    [ "$(prepared)" = 0 ]
}

prepared() {
    jq '.claims | length' "$W/dra/claims.json"
}

# part NAME [SHARES MEMORY [SELECTOR]]: the JSON of what a request asks for; NAME may be empty.
part() {
    jq -n --arg name "$1" --arg class $DRIVER --arg shares "${2:-}" --arg memory "${3:-}" --arg cel "${4:-}" '
        {deviceClassName: $class} +
        (if $shares == "" then {} else {capacity: {requests: {shares: $shares, memory: $memory}}} end) +
        (if $cel == "" then {} else {selectors: [{cel: {expression: $cel}}]} end) |
        if $name == "" then . else . + {name: $name} end'
}

# claim_pod NAME REQUEST COMMAND: a pod with a claim by a template of its name; REQUEST is the JSON of one request.
claim_pod() {
    api POST "$CLAIMS/resourceclaimtemplates" \
        "{\"metadata\": {\"name\": \"$1\"}, \"spec\": {\"spec\": {\"devices\": {\"requests\": [$2]}}}}" > /dev/null &&
        api POST /api/v1/namespaces/default/pods "$(pod_manifest "$1" 1 "$3" | jq --arg resource "$RESOURCE" '
            del(.spec.nodeName) | del(.spec.containers[0].resources.limits[$resource]) |
            .spec.tolerations = [{operator: "Exists"}] |
            .spec.resourceClaims = [{name: "gpu", resourceClaimTemplateName: .metadata.name}] |
            .spec.containers[0].resources.claims = [{name: "gpu"}]')" > /dev/null
}

exactly() {
    jq -n --argjson part "$(part "" "${@:2}")" --arg name "$1" '{name: $name, exactly: $part}'
}

# On the GPU with this number.
of_gpu() {
    echo "device.attributes[\"$DRIVER\"].uuid.endsWith(\"$(printf %02x "$1")\")"
}

# holds NAME REQUEST: such a pod, which stays, and records what it was given.
holds() {
    rm -f "$W/shared/$1".*
    claim_pod "$1" "$2" "$(resident "$1")" && until_ok 30 has_given "$1" || {
        explain "$1"
        return 1
    }
}

# unplaced NAME: the scheduler says why the pod has no node.
unplaced() {
    until_ok 20 is_unplaced "$1" || {
        explain "$1"
        return 1
    }
}

is_unplaced() {
    pod_get "$1" '.status.conditions[] | select(.type == "PodScheduled" and .status == "False").message' | grep -q claim
}

# By template, by model, and by the first that is available. The agent limits what the claim says.
dra() {
    local model='device.attributes["gpu.weir.dev"].model'
    dra_up || return
    claim_pod works "$(exactly gpu 30 200Mi "$model.contains(\"Simulated\") && $(of_gpu 2)")" "$(worker works)" && until_ok 30 ready works &&
        until_ok 10 client_is works .share 30 && client_is works .memoryLimit $((200 << 20)) || return 1
    claim_pod first "{\"name\": \"gpu\", \"firstAvailable\": [$(part big 30 200Mi "$model == \"none\""), $(part small 10 64Mi)]}" \
        'vector-add && matrix-multiply' && succeeds first 30 || return 1
    # By default a claim gets the whole GPU, without Weir.
    holds whole "$(exactly gpu "" "" "$(of_gpu 7)")" && ! mounted whole /etc/ld.so.preload && mounted whole libcuda.so.1 &&
        expect "whole has" "$(numbers "$(given whole CUDA_VISIBLE_DEVICES)")" 7 || return 1
    # What does not fit waits until a claim ends.
    holds a "$(exactly gpu 70 500Mi "$(of_gpu 6)")" && expect "a has" "$(numbers "$(given a WEIR_GPU)")" 6 &&
        claim_pod b "$(exactly gpu 40 100Mi "$(of_gpu 6)")" true && unplaced b &&
        claim_pod c "$(exactly gpu 10 600Mi "$(of_gpu 6)")" true && unplaced c || return 1
    touch "$W/shared/a.stop"
    succeeds a 20 && succeeds b 30 && succeeds c 30 && finishes works || return 1
    # What no container can have is refused with a reason.
    claim_pod two "$(exactly one 10 64Mi),$(exactly other 10 64Mi)" true &&
        hears Pod two FailedPrepareDynamicResources 'a claim has a part of one GPU, or whole GPUs' && dra_down
}

# A GPU that both interfaces offer is never oversold.
dra_beside() {
    dra_up || return
    resides old 100 && resides part 40 && expect "the resource has" "$(numbers "$(given old NVIDIA_VISIBLE_DEVICES),$(given part WEIR_GPU)")" "0 1" &&
        pod more 10 true && until_ok 10 phase_is more Failed || return 1
    claim_pod much "$(exactly gpu 70 100Mi "$(of_gpu 1)")" true && claim_pod none "$(exactly gpu 1 2Mi "$(of_gpu 0)")" true &&
        unplaced much && unplaced none &&
        holds rest "$(exactly gpu 60 100Mi "$(of_gpu 1)")" && expect "rest has" "$(numbers "$(given rest WEIR_GPU)")" 1 || return 1
    # The whole of GPU 1 for the resource: only what the claim leaves, until it ends.
    plugin_offers 140 "$(grep '^dra:' "$W/plugin.yaml")" 'gpus: [{index: 0, shares: 100}, {index: 1, shares: 100}]' &&
        until_ok 20 offers $((SIM_GPUS - 2)) && touch "$W/shared/rest.stop" && succeeds rest 20 &&
        until_ok 20 allocatable_is 200 || return 1
    # Most of GPU 0 for claims: not before the pod ends that has it.
    plugin_offers 60 "$(grep '^dra:' "$W/plugin.yaml")" 'gpus: [{index: 0, shares: 20}, {index: 1, shares: 40}]' &&
        until_ok 20 grep -q 'pods keep 80 shares' "$W/plugin.log" && until_ok 20 offers $((SIM_GPUS - 1)) &&
        touch "$W/shared/old.stop" && succeeds old 20 && until_ok 40 offers $SIM_GPUS && dra_down
}

# Restarts of kubelet and plugin: the pods go on, the slice comes back, and nothing stays prepared.
dra_restarts() {
    local noted registered
    dra_up && claim_pod works "$(exactly gpu 30 200Mi)" "$(worker works)" && until_ok 30 ready works &&
        until_ok 20 phase_is works Running || return
    noted=$(containers works)
    registered=$(registrations)
    stop kubelet
    start_kubelet
    until_ok 60 registered_since "$registered" && claim_pod one "$(exactly gpu 20 64Mi)" vector-add && succeeds one 60 &&
        unharmed "$noted" works || return 1
    signal=KILL dra_offers && until_ok 30 offers $((SIM_GPUS - 1)) && until_ok 10 grep -q ' claims are prepared' "$W/plugin.log" &&
        client_is works .share 30 && claim_pod two "$(exactly gpu 20 64Mi)" vector-add && succeeds two 60 && unharmed "$noted" works || return 1
    # The agent knows the claim after its restart, too.
    stop agent KILL
    start_agent
    until_ok 10 agent_ready && until_ok 10 client_is works .share 30 && client_is works .memoryLimit $((200 << 20)) &&
        finishes works && dra_down
}

# A sick GPU leaves the slice, and comes back.
dra_health() {
    dra_up || return
    inject 5 xid 74
    until_ok 20 offers $((SIM_GPUS - 2)) && ! offered | grep '05$' > /dev/null &&
        until_ok 30 offers $((SIM_GPUS - 1)) && dra_down
}
