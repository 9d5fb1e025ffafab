#!/bin/bash
# Claims of GPUs on four nodes with four simulated GPUs each: a real API server, scheduler and claim controller, four
# device plugins, and dra-nodes.py in place of the kubelets. WEIR_SKIP_KUBELET=1 leaves it out.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD/e2e/cluster
CGROUP=weir-dra
W=${W:-$PWD/${B:-build}/dra}
# shellcheck source-path=SCRIPTDIR source=../cluster.sh
. "$here/cluster.sh"
# shellcheck source-path=SCRIPTDIR source=../weir.sh
. "$here/weir.sh"
# shellcheck source-path=SCRIPTDIR source=../dra.sh
. "$here/dra.sh"

# The control plane of cluster_up, without a node.
control_plane_up() {
    kube=$KUBE
    cluster_down
    mkdir -p "$W/pki"
    {
        pick_ports
        echo "kube=$kube"
        echo "ip_forward=$(cat /proc/sys/net/ipv4/ip_forward)"
    } > "$W/settings"
    cluster_join
    write_users
    start_etcd
    start_apiserver
    must 120 apiserver_ready
    start_dra_controllers
    must 20 api GET /api/v1/namespaces/default
    must 20 grant_plugin
    kubeconfig_for token-plugin > "$W/plugin.kubeconfig"
}

make_node() {
    local dir=$W/$1
    mkdir -p "$dir"/{sim,registry,state,kubelet,cdi}
    echo '{"claims": []}' > "$dir/state/claims.json"
    printf '%s=%s\n' gpus 4 > "$dir/sim/config"
    cat > "$dir/plugin.yaml" << Y
pluginDir: $dir/kubelet
driver: {mount: always, libraries: $PWD/$B/simcuda, nvml: $PWD/$B/simcuda/libnvidia-ml.so.1}
cdi: {dir: $dir/cdi}
dra: {enabled: true, nodeName: $1, kubeconfig: $W/plugin.kubeconfig, registryDir: $dir/registry, stateDir: $dir/state, podResources: ""}
Y
}

cluster_or_skip "claims on several nodes"
cluster_apart "$0" "$@"
cluster_trap
for file in bin/weir-device-plugin bin/dra-call simcuda/libcuda.so.1 simcuda/libnvidia-ml.so.1; do
    [ -r "$B/$file" ] || die "no $B/$file; make all builds it"
done
control_plane_up
for node in a b c d; do make_node $node; done
if "$here/dra-nodes.py" --api "$port_api" --ca "$W/pki/api/apiserver.crt" --token token-admin \
    --plugin "$B/bin/weir-device-plugin" --call "$B/bin/dra-call" "$@" "$W"/{a,b,c,d}; then
    echo "ok - claims on several nodes: each that fits is placed, none is oversold, nothing stays behind"
else
    echo "not ok - claims on several nodes"
    for log in "$W"/{a,b,c,d}/plugin.log "$W/scheduler.log"; do tail -n 4 "$log" | cut -c1-300 | sed "s|^|# |"; done
    exit 1
fi
