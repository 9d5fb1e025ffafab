# Sourced: a node of etcd, API server, containerd and kubelet as plain processes. CONTROLLERS=1 adds the scheduler, the
# controllers that workloads need, service accounts, and a network on which pods reach the API server. Without it pods
# name their node and use the host's network.
#
# Everything is in one folder, $W, except the cgroup /$CGROUP of all pods and the kubelet's folder of device plugins.
# cluster_down removes all three, also after a run that died. Every process is known by its pid and start time.
# shellcheck shell=bash
# The file `settings` sets the ports.
# shellcheck disable=SC2154

B=${B:-build}
W=${W:-$(pwd)/$B/kubelet}
NODE=weir-test
NODE_ADDRESS=10.254.77.1
CGROUP=${CGROUP:-weir-e2e}
SERVICE_ADDRESS=10.99.0.1 # the API server's, as pods know it
CONTROLLERS=${CONTROLLERS:-}
CONTAINERD=${CONTAINERD:-} # folder of a containerd with CDI; empty: Debian's, without
CONTAINERD_SOCKET=${CONTAINERD_SOCKET:-$W/ctd/ctd.sock}
PLUGINS=/var/lib/kubelet/device-plugins
CNI=${CNI:-/usr/lib/cni}
IMAGE=localhost/weir-test:1
here=${here:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}

die() {
    echo "kubelet: $*" >&2
    exit 1
}

# until SECONDS COMMAND...: false when the time is over.
until_ok() {
    local end=$((SECONDS + $1))
    shift
    until "$@" > /dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

must() {
    until_ok "$@" && return
    for log in "$W"/*.log; do
        echo "# ${log##*/}:"
        tail -n 5 "$log" | cut -c1-300 | sed 's/^/#   /'
    done
    die "waited $1 s for: ${*:2}"
}

# Processes

started_at() {
    # Field 22, counted after the name, which may contain anything.
    sed 's/.*) //' "/proc/$1/stat" 2> /dev/null | cut -d' ' -f20
}

# start NAME COMMAND...: in the background; log in NAME.log.
start() {
    local name=$1
    shift
    setsid "$@" >> "$W/$name.log" 2>&1 < /dev/null 9>&- &
    echo "$! $(started_at $!)" > "$W/$name.pid"
    disown $!
}

# The pid of NAME, if it runs and is the one that we started.
pid_of() {
    local pid began
    read -r pid began 2> /dev/null < "$W/$1.pid" || return 1
    [ "$(started_at "$pid")" = "$began" ] && echo "$pid"
}

stop() {
    local name=$1 signal=${2:-TERM} pid
    if pid=$(pid_of "$name"); then
        kill "-$signal" "$pid" 2> /dev/null
        until_ok 10 stopped "$name" || kill -KILL "$pid" 2> /dev/null
        until_ok 5 stopped "$name"
    fi
    rm -f "$W/$name.pid"
}

stopped() {
    local state
    pid_of "$1" > /dev/null || return 0
    state=$(sed 's/.*) //' "/proc/$(pid_of "$1")/stat" 2> /dev/null | cut -d' ' -f1)
    [ "${state:-Z}" = Z ]
}

# Cgroups: every hierarchy of v1, the one of v2, or both side by side.

cgroup_roots() {
    awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/self/mounts
}

cgroup_make() {
    local root
    for root in $(cgroup_roots); do
        mkdir -p "$root/$CGROUP"
        [ -f "$root/cpuset.cpus" ] || continue
        cat "$root/cpuset.cpus" > "$root/$CGROUP/cpuset.cpus"
        cat "$root/cpuset.mems" > "$root/$CGROUP/cpuset.mems"
    done
}

cgroup_pids() {
    local root
    for root in $(cgroup_roots); do
        find "$root/$CGROUP" -name cgroup.procs -exec cat {} + 2> /dev/null
    done | sort -u
}

cgroup_empty() {
    local pid
    for pid in $(cgroup_pids); do
        kill -KILL "$pid" 2> /dev/null
    done
    [ -z "$(cgroup_pids)" ]
}

cgroup_remove() {
    local root
    until_ok 10 cgroup_empty
    for root in $(cgroup_roots); do
        [ -d "$root/$CGROUP" ] && find "$root/$CGROUP" -depth -type d -exec rmdir {} \; 2> /dev/null
    done
    return 0
}

# Free ports, recorded so that a restarted process uses them again.
pick_ports() {
    local port=26400 name
    for name in api etcd etcd_peer kubelet kubelet_health scheduler controllers; do
        while ss -Hltn | awk '{print $4}' | grep -q ":$port\$"; do port=$((port + 1)); done
        echo "port_$name=$port"
        port=$((port + 1))
    done
}

# Configuration

kubeconfig_for() {
    cat << K
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$port_api", certificate-authority: "$W/pki/api/apiserver.crt"}}]
users: [{name: u, user: {token: $1}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
K
}

write_containerd() {
    local cdi=
    [ -z "$CONTAINERD" ] || cdi="enable_cdi = true
  cdi_spec_dirs = [\"$W/cdi\"]"
    cat > "$W/containerd.toml" << T
version = 2
root = "$W/ctd/root"
state = "$W/ctd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "$CONTAINERD_SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$IMAGE"
  netns_mounts_under_state_dir = true
  $cdi
  disable_apparmor = true
  # Root without CAP_SYS_RESOURCE may not lower the score as the kubelet wants.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$CNI"
    conf_dir = "$W/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$(command -v runc)"
        SystemdCgroup = false
T
    # For the node to be ready, and for pods that do not use the host's network.
    cat > "$W/cni/10-none.conflist" << T
{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "bridge", "bridge": "$CGROUP", "isGateway": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.254.78.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$W/cni-ipam"}}]}
T
}

write_kubelet() {
    cat > "$W/kubelet.yaml" << T
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_ADDRESS
port: $port_kubelet
healthzPort: $port_kubelet_health
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
enforceNodeAllocatable: [pods]
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
podLogsDir: $W/pods
failSwapOn: false
failCgroupV1: false
makeIPTablesUtilChains: false
staticPodPath: $W/manifests
resolvConf: ""
evictionHard: {memory.available: "50Mi", nodefs.available: "1%", imagefs.available: "1%", nodefs.inodesFree: "1%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
shutdownGracePeriod: 0s
syncFrequency: 2s
fileCheckFrequency: 1s
nodeStatusUpdateFrequency: 1s
volumeStatsAggPeriod: 0s
featureGates: {DRAConsumableCapacity: true}
T
}

# Users: an admin, the kubelet, and agent and plugin with the permissions of the chart.
write_users() {
    umask 077
    cat > "$W/tokens.csv" << 'T'
token-admin,admin,admin,"system:masters"
token-node,system:node:weir-test,node,"system:nodes"
token-agent,weir-agent,agent,"weir"
token-plugin,weir-plugin,plugin,"weir"
T
    kubeconfig_for token-node > "$W/kubelet.kubeconfig"
    kubeconfig_for token-agent > "$W/agent.kubeconfig"
    kubeconfig_for token-admin > "$W/admin.kubeconfig"
    umask 022
    openssl genrsa -out "$W/pki/sa.key" 2048 2> /dev/null
    openssl rsa -in "$W/pki/sa.key" -pubout -out "$W/pki/sa.pub" 2> /dev/null
}

# The image: a shell, our test programs, and the libraries that they, libweir and the driver need.
make_image() {
    local root=$W/image program library
    mkdir -p "$root"/{bin,tmp,etc,dev,proc,sys}
    chmod 1777 "$root/tmp"
    cp "$(command -v busybox)" "$root/bin/sh"
    for program in $(busybox --list); do
        [ "$program" = sh ] || ln -s sh "$root/bin/$program"
    done
    for program in "$@"; do
        [ -r "$program" ] || die "no $program; make all builds it"
        case $program in
        *.so*) ;;
        *) cp "$program" "$root/bin/" ;;
        esac
        for library in $(ldd "$program" | grep -o '/[^ ]*'); do
            case $library in
            *libcuda* | *libnvidia* | *libweir*) continue ;;
            esac
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    done
    deploy/image.py "$W/image.tar" "$IMAGE" "$root" --cmd '["/bin/sleep", "1000000"]' > /dev/null
}

# The API

# api METHOD PATH [JSON] [CONTENT-TYPE]: the answer's body; fails on an error status.
api() {
    curl -sS --fail-with-body -m 10 --cacert "$W/pki/api/apiserver.crt" -X "$1" \
        -H 'Authorization: Bearer token-admin' -H "Content-Type: ${4:-application/json}" \
        ${3:+--data-binary "$3"} "https://127.0.0.1:$port_api$2"
}

node_ready() {
    api GET "/api/v1/nodes/$NODE" |
        jq -e '.status.conditions[] | select(.type == "Ready" and .status == "True")'
}

# Starting

start_etcd() {
    start etcd "$kube/etcd" --data-dir="$W/etcd" --unsafe-no-fsync --log-level=warn \
        --listen-client-urls="http://127.0.0.1:$port_etcd" --advertise-client-urls="http://127.0.0.1:$port_etcd" \
        --listen-peer-urls="http://127.0.0.1:$port_etcd_peer" \
        --initial-advertise-peer-urls="http://127.0.0.1:$port_etcd_peer" \
        --initial-cluster="default=http://127.0.0.1:$port_etcd_peer"
}

# Pods without a token need no controllers.
admission() {
    [ -n "$CONTROLLERS" ] || echo --disable-admission-plugins=ServiceAccount
}

start_apiserver() {
    # shellcheck disable=SC2046
    start apiserver "$kube/kube-apiserver" --etcd-servers="http://127.0.0.1:$port_etcd" \
        --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$port_api" \
        --cert-dir="$W/pki/api" --authorization-mode=Node,RBAC --anonymous-auth=false \
        --token-auth-file="$W/tokens.csv" --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$W/pki/sa.pub" --service-account-signing-key-file="$W/pki/sa.key" \
        --service-cluster-ip-range=10.99.0.0/24 --endpoint-reconciler-type=none \
        --allow-privileged=true $(admission) --feature-gates=MutatingAdmissionPolicy=true,DRAConsumableCapacity=true \
        --runtime-config=admissionregistration.k8s.io/v1beta1=true \
        --shutdown-delay-duration=0s --v=1
}

# start_controller NAME PORT COMMAND...
start_controller() {
    local name=$1 port=$2
    shift 2
    start "$name" "$@" --kubeconfig="$W/admin.kubeconfig" --authentication-kubeconfig="$W/admin.kubeconfig" \
        --authorization-kubeconfig="$W/admin.kubeconfig" --bind-address=127.0.0.1 --secure-port="$port" \
        --cert-dir="$W/pki/$name" --leader-elect=false --feature-gates=DRAConsumableCapacity=true
}

start_controllers() {
    start_controller scheduler "$port_scheduler" "$kube/kube-scheduler"
    start_controller controllers "$port_controllers" "$kube/kube-controller-manager" \
        --controllers=daemonset-controller,deployment-controller,replicaset-controller,job-controller,garbage-collector-controller,namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,node-lifecycle-controller,resourceclaim-controller \
        --service-account-private-key-file="$W/pki/sa.key" --root-ca-file="$W/pki/api/apiserver.crt"
    # The service of the API server, which kube-proxy would provide.
    ip addr replace "$SERVICE_ADDRESS/32" dev lo
    start service "$here/forward.py" "$SERVICE_ADDRESS" 443 127.0.0.1 "$port_api"
}

has_no_taint() {
    api GET "/api/v1/nodes/$NODE" | jq -e '.spec.taints // [] | length == 0'
}

start_containerd() {
    PATH=${CONTAINERD:+$CONTAINERD:}$PATH start containerd containerd -c "$W/containerd.toml"
}

start_kubelet() {
    start kubelet "$kube/kubelet" --config="$W/kubelet.yaml" --kubeconfig="$W/kubelet.kubeconfig" \
        --hostname-override="$NODE" --node-ip="$NODE_ADDRESS" --cert-dir="$W/pki/kubelet" \
        --root-dir="$W/lib" --v="${KUBELET_V:-2}"
}

ctr_k8s() {
    ctr -a "$CONTAINERD_SOCKET" -n k8s.io "$@"
}

apiserver_ready() {
    api GET /readyz
}

check_machine() {
    local program
    [ "$(id -u)" = 0 ] || die "these tests start containers and need root (WEIR_SKIP_KUBELET=1 leaves them out)"
    for program in containerd ctr runc jq curl ss ip openssl python3 busybox; do
        command -v "$program" > /dev/null || die "$program is missing; make setup installs it"
    done
    [ -x "$CNI/bridge" ] || die "containernetworking-plugins is missing; make setup installs it"
}

check_alone() {
    if ss -Hlx | grep -q " $PLUGINS/kubelet.sock "; then
        die "another kubelet runs on this machine; a second one would take its device plugins"
    fi
}

# cluster_or_skip WHAT: ends a test that cannot run, or shall not. Sets KUBE.
cluster_or_skip() {
    if [ "${WEIR_SKIP_KUBELET:-}" = 1 ]; then
        echo "ok - $1 # SKIP because WEIR_SKIP_KUBELET=1"
        exit 0
    fi
    if ldd "$B/lib/libweir.so" | grep -q libasan; then
        echo "ok - $1 # SKIP because a sanitizer cannot be preloaded into containers"
        exit 0
    fi
    check_machine
    KUBE=$("$here/build.sh" kube) || die "cannot build the kubelet"
    export KUBE
}

# cluster_trap: ends the node with the script, unless KEEP=1.
cluster_trap() {
    [ -n "${KEEP:-}" ] || trap 'trap - EXIT; cluster_down' EXIT
    trap 'exit 1' TERM INT
}

# cluster_apart SCRIPT ARGUMENT...: restarts the script with mounts and a network of its own, so that its node can
# run beside others. Such a script also has its own $CGROUP and $W. Only one run of it at a time. $APART: more options of
# unshare.
cluster_apart() {
    local folder
    [ -n "${CLUSTER_APART:-}" ] || CLUSTER_APART=1 exec unshare --mount --net --propagation private ${APART:-} "$@"
    exec 9> "/tmp/$CGROUP.lock"
    flock -w 600 9 || die "another run of this test has not ended"
    ip link set lo up || die "cannot configure the network namespace"
    # Folders that kubelet and CNI write, whose paths are fixed.
    for folder in /var/lib/{kubelet,cni}; do
        mkdir -p "$folder" && mount -t tmpfs weir-e2e "$folder" || die "cannot mount $folder"
    done
}

# overlayfs, unless the file system of $W does not support it.
pick_snapshotter() {
    local try=$W/try
    mkdir -p "$try"/{lower,upper,work,merged}
    snapshotter=native
    if mount -t overlay weir-e2e -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" "$try/merged" 2> /dev/null; then
        umount "$try/merged"
        snapshotter=overlayfs
    fi
    rm -rf "$try"
}

# cluster_up PROGRAM...: starts the node and waits until it is ready. The programs are in the image's /bin.
cluster_up() {
    check_machine
    kube=${KUBE:-$("$here/build.sh" kube)} || die "cannot build the kubelet"
    cluster_down
    check_alone
    mkdir -p "$W"/{pki,cni,manifests,ctd,pods}
    {
        pick_ports
        echo "kube=$kube"
        echo "ip_forward=$(cat /proc/sys/net/ipv4/ip_forward)" # the bridge switches it on
    } > "$W/settings"
    cluster_join
    pick_snapshotter
    write_users
    write_containerd
    write_kubelet
    ip addr replace "$NODE_ADDRESS/32" dev lo
    cgroup_make
    start_etcd
    start_containerd
    start_apiserver
    make_image "$@"
    must 20 ctr_k8s version
    ctr_k8s images import "$W/image.tar" > /dev/null || die "containerd refused the image"
    must 120 apiserver_ready
    start_kubelet
    must 120 node_ready
    must 10 test -S "$PLUGINS/kubelet.sock"
    must 20 api GET /api/v1/namespaces/default
    [ -z "$CONTROLLERS" ] || {
        start_controllers
        must 60 has_no_taint
        must 20 api GET /api/v1/namespaces/default/serviceaccounts/default
    }
}

# Reads the settings of cluster_up in another shell.
cluster_join() {
    # shellcheck disable=SC1091
    . "$W/settings"
}

# Stopping

unmount_all() {
    local mount
    awk -v w="$W/" 'index($2, w) == 1 { print $2 }' /proc/self/mounts | tac | while read -r mount; do
        umount -l "$mount" 2> /dev/null
    done
}

# A shim outlives its containerd; ours have our socket's name in their arguments.
stop_shims() {
    local pid
    for pid in $(pgrep -f "containerd-shim.* -address $CONTAINERD_SOCKET"); do
        kill -KILL "$pid" 2> /dev/null
    done
    return 0
}

remove_log_links() {
    local link
    for link in /var/log/containers/*; do
        case $(readlink "$link" 2> /dev/null) in
        "$W"/*) rm -f "$link" ;;
        esac
    done
    rmdir /var/log/containers 2> /dev/null
    return 0
}

cluster_down() {
    local name address
    [ -d "$W" ] || return 0
    stop kubelet
    for name in "$W"/*.pid; do
        name=$(basename "$name" .pid)
        case $name in
        '*' | apiserver | etcd | containerd) ;;
        *) stop "$name" ;;
        esac
    done
    cgroup_remove
    # The API server before etcd: without it, it takes a minute to stop.
    stop apiserver KILL
    stop etcd KILL
    stop containerd
    stop_shims
    unmount_all
    cgroup_remove
    ip link del "$CGROUP" 2> /dev/null
    for address in "$NODE_ADDRESS" "$SERVICE_ADDRESS"; do ip addr del "$address/32" dev lo 2> /dev/null; done
    remove_log_links
    if [ -f "$W/settings" ]; then
        sed -n 's/^ip_forward=//p' "$W/settings" > /proc/sys/net/ipv4/ip_forward
        rm -rf "$PLUGINS"
        rmdir /var/lib/kubelet 2> /dev/null
    fi
    rm -rf "$W"
}
