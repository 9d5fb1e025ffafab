#!/bin/bash
# Packs a node of real parts, Weir's images and manifests, and what runs on them into one tarball, for machines
# on which nothing can be fetched: e2e/bench/run cluster unpacks and runs it.
#
#   weir-cluster-VERSION-x86_64/
#     node/kube/           etcd, API server, scheduler, controllers and kubelet: one program of five names
#     node/bin, node/cni   Debian's containerd, runc and what they need, with their libraries in node/lib
#     build/               workloads, libweir.so, the simulated driver
#     build/cluster/       the images' roots; the chart's manifests, as JSON, for a real and a simulated GPU
#     e2e/ deploy/         the scripts
#
# It takes a few minutes, as everything is compressed as far as possible.
set -euo pipefail
cd "$(dirname "$0")/.."
B=${B:-build}
VERSION=${VERSION:?}
name=weir-cluster-$VERSION-$(uname -m)
tarball=$PWD/$B/$name.tar.xz
root=$PWD/$B/cluster-bundle/$name
PRESET=${PRESET:-6}

fail() {
    echo "cluster-bundle: $*" >&2
    exit 1
}

# tool PROGRAM...: programs of this system, with their libraries except glibc's.
tool() {
    local program path library
    for program in "$@"; do
        path=$(type -P "$program") || fail "no $program; make setup installs it"
        cp -L "$path" "$root/node/libexec/$program"
        strip -s "$root/node/libexec/$program" 2> /dev/null || true
        for library in $(ldd "$path" 2> /dev/null | grep -o '/[^ ]*'); do
            case $library in
            */ld-linux* | */libc.so.* | */libm.so.* | */libresolv.so.* | */libpthread.so.* | */libdl.so.*) ;;
            *) cp -nL "$library" "$root/node/lib/" ;;
            esac
        done
        cat > "$root/node/bin/$program" << 'S'
#!/bin/sh
node=$(dirname "$(dirname "$(readlink -f "$0")")")
LD_LIBRARY_PATH=$node/lib exec "$node/libexec/${0##*/}" "$@"
S
        chmod 755 "$root/node/bin/$program"
    done
}

# plain PROGRAM...: programs that need only glibc.
plain() {
    local program
    for program in "$@"; do
        cp -L "$(type -P "$program")" "$root/node/bin/" || fail "no $program; make setup installs it"
    done
}

copy_node() {
    local kube
    mkdir -p "$root"/node/{bin,libexec,lib,cni,kube}
    kube=$(e2e/cluster/build.sh kube)
    cp -P "$kube"/* "$root/node/kube/"
    plain containerd containerd-shim-runc-v2 ctr busybox
    tool runc ip ss
    cp /usr/lib/cni/{bridge,host-local,loopback,portmap} "$root/node/cni/"
}

copy_weir() {
    local program
    mkdir -p "$root"/build/{bin,lib,simcuda,cluster/images}
    for program in burst filler vector-add stream-order memory-storm sim-mps-control; do
        strip -o "$root/build/bin/$program" "$B/bin/$program"
    done
    strip -o "$root/build/bin/worker" "$B/bench/worker"
    strip --strip-unneeded -o "$root/build/lib/libweir.so" "$B/lib/libweir.so"
    cp -L "$B"/simcuda/{libcuda.so.1,libnvidia-ml.so.1} "$root/build/simcuda/"
    strip --strip-unneeded "$root"/build/simcuda/*.so.1
    for program in agent plugin; do deploy/image-root.sh "$program" "$root/build/cluster/images/$program"; done
    # It runs with the libraries of the agent's image.
    cat > "$root/build/bin/weirctl" << 'S'
#!/bin/sh
image=$(dirname "$(dirname "$(readlink -f "$0")")")/cluster/images/agent
exec "$image/lib64/ld-linux-x86-64.so.2" --library-path "$image/usr/lib/x86_64-linux-gnu" "$image/usr/local/bin/weirctl" "$@"
S
    chmod 755 "$root/build/bin/weirctl"
    echo "$VERSION" > "$root/build/cluster/version"
}

copy_scripts() {
    mkdir -p "$root"/{e2e/bench/programs,e2e/cluster,deploy}
    cp -r e2e/bench/{run,sets.json,lib,experiments} "$root/e2e/bench/"
    cp e2e/bench/programs/*.py "$root/e2e/bench/programs/"
    rm -rf "$root"/e2e/bench/*/__pycache__
    git describe --always --dirty --abbrev=7 --exclude='*' > "$root/commit"
    cp e2e/cluster/{cluster.sh,weir.sh,work.sh,forward.py} "$root/e2e/cluster/"
    cp deploy/image.py "$root/deploy/"
}

rm -rf "$root" "$tarball"
copy_node
copy_weir
copy_scripts
e2e/bench/lib/cluster-manifests.sh "$root/build/cluster"
if [ -n "${UNPACKED:-}" ]; then
    echo "cluster-bundle: $root"
    exit 0
fi
# The node's part seldom changes, so its compressed stream is cached. xz reads two streams in a row as one.
pack() {
    tar -C "$B/cluster-bundle" --owner=0 --group=0 --sort=name -cf - "$@" |
        xz -T1 -c --x86 --lzma2="preset=$PRESET,dict=256MiB"
}
node=${XDG_CACHE_HOME:-$HOME/.cache}/weir/$name-$(cd "$root" && find node -type f -exec sha256sum {} + | sort | sha256sum | cut -c1-16).tar.xz
[ -f "$node" ] || {
    pack "$name/node" > "$node.new"
    mv "$node.new" "$node"
}
{
    cat "$node"
    pack "$name"/{build,commit,deploy,e2e}
} > "$tarball"
rm -rf "$B/cluster-bundle"
echo "cluster-bundle: $tarball, $(du -k "$tarball" | cut -f1) KiB"
