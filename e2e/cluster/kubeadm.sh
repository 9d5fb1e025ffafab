# Sourced after cluster.sh: a fresh machine with containerd, kubeadm, kubectl and Helm, and a cluster of one node on it
# that `kubeadm init` has made. $kube and $operator are the folders of these programs, $helm is a file. What an
# installation writes below /etc, /usr/local, /run and /var belongs to the mounts of this test; the programs of the real
# machine are there.
# shellcheck shell=bash disable=SC2154

CONTAINERD_SOCKET=/run/containerd/containerd.sock
KUBE_IMAGE=localhost/weir-kube:1
CLUSTER_CONFIG=/etc/kubernetes/admin.conf

# overlay FOLDER: writes to it go to memory.
overlay() {
    local upper=$W/overlay$1
    mkdir -p "$upper"/{files,work}
    mount -t overlay weir-e2e -o "lowerdir=$1,upperdir=$upper/files,workdir=$upper/work" "$1"
}

# A machine that nothing was installed on, with the programs that its owner has by now.
machine_up() {
    local folder program
    cluster_down
    mkdir -p "$W"/{ctd,cni,home,overlay,logs}
    mount -t tmpfs weir-e2e "$W/overlay" || die "cannot mount a tmpfs"
    # The root is a shared mount, as systemd makes it.
    mount --make-rshared /
    for folder in /etc /usr/local /var/cache /var/lib; do overlay "$folder" || die "cannot mount over $folder"; done
    for folder in /run /var/log /var/lib/{kubelet,etcd,cni}; do
        mkdir -p "$folder" && mount -t tmpfs weir-e2e "$folder" || die "cannot mount $folder"
    done
    ln -sf "$kube/kubelet" "$operator/"{kubeadm,kubectl} /usr/local/bin/
    ln -sf "$helm" /usr/local/bin/helm
    rm -rf /etc/kubernetes /etc/cni/net.d
    mkdir -p /etc/cni/net.d /run/containerd
    export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} HOME=$W/home
    unset KUBECONFIG
    echo "$NODE_ADDRESS $NODE" >> /etc/hosts
    connect_machine || die "cannot make a network"
    cgroup_make
}

# A network card with a default route, which leads nowhere.
connect_machine() {
    ip link add uplink type veth peer name beyond && ip addr add "$NODE_ADDRESS/24" dev uplink && ip link set beyond up &&
        ip link set uplink up && ip route add default via "${NODE_ADDRESS%.*}.254"
}

# One image for the whole control plane: each pod of kubeadm says which program it wants. kube-proxy calls iptables.
make_kube_image() {
    local root=$W/kube-image libraries program library
    libraries=/usr/lib/$(uname -m)-linux-gnu
    mkdir -p "$root"/{usr/local/bin,usr/bin,usr/lib64,"$libraries",tmp}
    for library in bin lib lib64; do ln -s "usr/$library" "$root/$library"; done
    cp -P "$kube"/* "$operator"/* "$root/usr/local/bin/"
    cp "$(command -v xtables-nft-multi)" "$root/usr/bin/"
    for program in {iptables,ip6tables}{,-save,-restore}; do ln -s xtables-nft-multi "$root/usr/bin/$program"; done
    cp -r "$libraries/xtables" "$root$libraries/"
    for library in $(ldd "$root/usr/bin/xtables-nft-multi" | grep -o '/[^ ]*'); do cp -L "$library" "$root$library"; done
    deploy/image.py "$W/kube-image.tar" "$KUBE_IMAGE" "$root" > /dev/null
    rm -rf "$root"
}

# The images under the names that kubeadm gives them. Nothing in Weir asks the cluster's DNS, which is left out.
import_kube_images() {
    local name
    make_kube_image || die "cannot make the control plane's image"
    make_image
    ctr_k8s images import "$W/kube-image.tar" > /dev/null && ctr_k8s images import "$W/image.tar" > /dev/null ||
        die "containerd refuses an image"
    for name in $("$operator/kubeadm" config images list --kubernetes-version "$(kubernetes_version)"); do
        case $name in
        */pause:*) ctr_k8s images tag "$IMAGE" "$name" ;;
        *) ctr_k8s images tag "$KUBE_IMAGE" "$name" ;;
        esac > /dev/null
    done
}

kubernetes_version() {
    "$operator/kubeadm" version -o short
}

# Where this machine is not like an operator's: cgroups of its own, a small disk, root without CAP_SYS_RESOURCE.
write_kubeadm() {
    cat > "$W/kubeadm.yaml" << T
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: $NODE_ADDRESS}
nodeRegistration:
  name: $NODE
  criSocket: unix://$CONTAINERD_SOCKET
  imagePullPolicy: Never
  kubeletExtraArgs: [{name: node-ip, value: $NODE_ADDRESS}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $(kubernetes_version)
networking: {podSubnet: 10.254.78.0/24}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
failSwapOn: false
failCgroupV1: false
resolvConf: ""
evictionHard: {memory.available: "50Mi", nodefs.available: "1%", imagefs.available: "1%", nodefs.inodesFree: "1%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
conntrack: {maxPerCore: 0}
T
}

# As the package's systemd unit does: again and again, until kubeadm has written what it needs.
run_kubelet() {
    local flags=/var/lib/kubelet/kubeadm-flags.env config=/var/lib/kubelet/config.yaml
    until [ -s "$flags" ] && [ -s "$config" ]; do sleep 0.2; done
    # shellcheck disable=SC1090
    . "$flags"
    # shellcheck disable=SC2086
    exec kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \
        --config="$config" $KUBELET_KUBEADM_ARGS
}

kubeadm_up() {
    pick_snapshotter
    write_containerd
    mv "$W"/cni/* /etc/cni/net.d/
    sed -i "s#$W/cni\"#/etc/cni/net.d\"#" "$W/containerd.toml"
    start_containerd
    must 20 ctr_k8s version
    import_kube_images
    write_kubeadm
    export -f run_kubelet
    start kubelet bash -c run_kubelet
    kubeadm init --config "$W/kubeadm.yaml" --skip-phases addon/coredns --ignore-preflight-errors all > "$W/kubeadm.log" 2>&1 9>&- ||
        must 1 false
    KUBECONFIG=$CLUSTER_CONFIG until_ok 60 kubectl get serviceaccount default || must 1 false
}
