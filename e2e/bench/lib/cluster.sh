#!/bin/bash
# Weir on a cluster of one node with a real GPU: etcd, API server, scheduler, controllers, kubelet, containerd,
# the chart's manifests and pods that run PyTorch, each figure with its baselines of the same run and a verdict.
#
#   cluster.sh BUNDLE.tar.xz|FOLDER|"" EXPERIMENT... OPTION...     called by e2e/bench/run, with its arguments
#
# The bundle is what `make cluster-bundle` made, by default in build/; it is unpacked, and everything that the
# run leaves is in /var/lib/weir-cluster until the end. Needs root, and python3 (for a real GPU with PyTorch), curl, jq,
# openssl, xz. The node's logs go to the folder that --out names.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export W=/var/lib/weir-cluster CGROUP=weir-cluster CONTROLLERS=1 B=build
began=$SECONDS

say() { echo "cluster: $*"; }

unpack() {
    local bundle='' made
    case ${1:-} in
    *.tar.xz) bundle=$1 ;;
    /*)
        root=$1
        return
        ;;
    *) for made in "$here"/../../../build/weir-cluster-*.tar.xz; do [ ! -f "$made" ] || bundle=$made; done ;;
    esac
    [ -f "$bundle" ] || {
        echo "cluster: no bundle: run 'make cluster-bundle', or name one" >&2
        exit 2
    }
    folder=$(mktemp -d /var/tmp/weir-cluster-XXXXXX)
    chmod 755 "$folder"
    tar -xiJf "$bundle" -C "$folder"
    root=$(echo "$folder"/weir-cluster-*)
}

# Pods with PyTorch get this machine's /usr through an overlay, in which mount points can be made.
mount_usr() {
    local name
    for name in weir plain; do
        mkdir -p "$W/usr-$name"/{upper,work,merged}
        mount -t overlay weir-cluster -o "lowerdir=/usr,upperdir=$W/usr-$name/upper,workdir=$W/usr-$name/work" "$W/usr-$name/merged"
    done
}

# The image of these pods: a root on which /usr is mounted.
host_image() {
    local root=$W/host-image link
    mkdir -p "$root"/{etc,tmp,dev,proc,sys,usr,opt,var/tmp}
    chmod 1777 "$root/tmp"
    for link in bin sbin lib lib64; do ln -s "usr/$link" "$root/$link"; done
    echo 'root:x:0:0::/tmp:/bin/sh' > "$root/etc/passwd"
    echo 'root:x:0:' > "$root/etc/group"
    deploy/image.py "$W/host.tar" localhost/weir-host:1 "$root" --cmd '["/bin/sh"]' > /dev/null
    ctr_k8s images import "$W/host.tar" > /dev/null
}

import_images() {
    local kind name version
    version=$(cat build/cluster/version)
    for kind in agent:weir-agent plugin:weir-device-plugin; do
        name=${kind#*:}
        deploy/image.py "$W/$name.tar" "$name:$version" "build/cluster/images/${kind%:*}" \
            --entrypoint "[\"/usr/local/bin/$name\"]" --cmd "[\"--config\", \"/etc/weir/${kind%:*}.yaml\"]" > /dev/null
        ctr_k8s images import "$W/$name.tar" > /dev/null
        ctr_k8s images tag "docker.io/library/$name:$version" "docker.io/library/$name:next" > /dev/null
    done
}

finish() {
    trap - EXIT
    if [ -d "$out" ] && [ -d "$W" ]; then
        (cd "$W" && tar -czf "$out/node-logs.tar.gz" -- *.log pods) 2> /dev/null || true
    fi
    for name in weir plain; do umount -l "$W/usr-$name/merged" 2> /dev/null || true; done
    cluster_down || true
    [ -z "$folder" ] || rm -rf "$folder"
}

folder='' root='' out=''
unpack "$@"
shift
cd "$root"
here=$root/e2e/cluster
export PATH=$root/node/bin:$PATH CNI=$root/node/cni KUBE=$root/node/kube
# shellcheck source-path=SCRIPTDIR source=../../cluster/cluster.sh
. e2e/cluster/cluster.sh
# shellcheck source-path=SCRIPTDIR source=../../cluster/weir.sh
. e2e/cluster/weir.sh
for program in pgrep awk; do
    command -v $program > /dev/null || ln -sf busybox "$root/node/bin/$program"
done
check_machine
for ((i = 1; i < $#; i++)); do
    if [ "${!i}" = --out ]; then
        i=$((i + 1))
        out=${!i}
    fi
done
set +e
trap finish EXIT
trap 'exit 1' TERM INT
say "unpacked after $((SECONDS - began)) s"
# Libraries are not copied, but what they need is.
driver=()
[ ! -d /usr/local/nvidia/lib64 ] || driver=(/usr/local/nvidia/lib64/lib{cuda,nvidia-ml,nvidia-ptxjitcompiler}.so.1)
cluster_up "$B"/bin/{burst,filler,vector-add,stream-order,memory-storm,worker} "$B"/lib/libweir.so \
    "$B"/simcuda/{libcuda.so.1,libnvidia-ml.so.1} "${driver[@]}"
install_driver
cp "$B/bin/sim-mps-control" "$W/host/driver/nvidia-cuda-mps-control"
mkdir -p "$W"/node/{lib,cache} "$W"/tmpfs/run
if ! { mount_usr && host_image && import_images; }; then die "cannot make the images"; fi
say "the node is ready after $((SECONDS - began)) s"
python3 e2e/bench/run --cluster "$W" --bundle "$root" "$@"
