#!/bin/bash
# The images of deploy/Dockerfile as tarballs, without a container engine or a registry:
#
#   build/images/weir-agent-VERSION.tar  weir-device-plugin-VERSION.tar
#
# `ctr -n k8s.io images import FILE` puts one on a node. $REGISTRY becomes the prefix of the names. An image
# must not exceed 60 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
export B=${B:-build}
VERSION=${VERSION:?}
out=$B/images

image() { # IMAGE NAME CONFIG
    deploy/image-root.sh "$1" "$out/$1"
    deploy/image.py "$out/$2-$VERSION.tar" "${REGISTRY:+$REGISTRY/}$2:$VERSION" "${ARCH:+$ARCH=}$out/$1" --gzip --limit-mb 60 \
        --entrypoint "[\"/usr/local/bin/$2\"]" --cmd "[\"--config\", \"/etc/weir/$3\"]"
    rm -rf "${out:?}/$1"
}

mkdir -p "$out"
image agent weir-agent agent.yaml
image plugin weir-device-plugin plugin.yaml
