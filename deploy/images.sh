#!/bin/bash
# The images of deploy/Dockerfile as tarballs, without a container engine or a registry:
#
#   build/images/weir-agent-VERSION.tar  weir-device-plugin-VERSION.tar
#
# `ctr -n k8s.io images import FILE` puts one on a node. $REGISTRY becomes the prefix of the names. An image
# must not exceed 60 MB, and its program must start in it.
set -euo pipefail
cd "$(dirname "$0")/.."
export B=${B:-build}
VERSION=${VERSION:?}
LIMIT_MB=60
out=$B/images

# in_root FOLDER COMMAND...: runs it with FOLDER as the root folder; needs no privileges.
in_root() {
    if [ "$(id -u)" = 0 ]; then chroot "$@"; else unshare -r chroot "$@"; fi
}

image() { # IMAGE NAME CONFIG
    local root=$out/$1 tarball=$out/$2-$VERSION.tar entrypoint="[\"/usr/local/bin/$2\"]"
    deploy/image-root.sh "$1" "$root"
    in_root "$root" "/usr/local/bin/$2" --help > /dev/null
    deploy/image.py "$tarball" "${REGISTRY:+$REGISTRY/}$2:$VERSION" "$root" --gzip \
        --entrypoint "$entrypoint" --cmd "[\"--config\", \"/etc/weir/$3\"]" | tee "$out/$1.txt"
    awk -v limit=$LIMIT_MB '{ exit !($2 <= limit) }' "$out/$1.txt" || {
        echo "images: $2 is larger than $LIMIT_MB MB" >&2
        exit 1
    }
    rm -rf "$root" "$out/$1.txt"
}

mkdir -p "$out"
image agent weir-agent agent.yaml
image plugin weir-device-plugin plugin.yaml
