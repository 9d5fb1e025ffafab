#!/bin/bash
# images.sh [IMAGE...]: images as tarballs, without a container engine or a registry. All by default:
#
#   agent, plugin   build/images/weir-agent-VERSION.tar, weir-device-plugin-VERSION.tar, as of deploy/Dockerfile
#   example         build/images/weir-example-VERSION.tar, the pods of deploy/docs/quick-start.md
#
# `ctr -n k8s.io images import FILE` puts one on a node. $REGISTRY becomes the prefix of the names. An image
# must not exceed 60 MB. Only one run at a time; a tarball is there as a whole, or not at all.
set -euo pipefail
cd "$(dirname "$0")/.."
export B=${B:-build}
VERSION=${VERSION:?}
out=$B/images

image() { # IMAGE NAME ENTRYPOINT CMD
    local tarball=$out/$2-$VERSION.tar
    deploy/image-root.sh "$1" "$out/$1"
    deploy/image.py "$tarball.part" "${REGISTRY:+$REGISTRY/}$2:$VERSION" "${ARCH:+$ARCH=}$out/$1" --gzip --limit-mb 60 \
        --entrypoint "$3" --cmd "$4"
    mv "$tarball.part" "$tarball"
    rm -rf "${out:?}/$1"
}

mkdir -p "$out"
exec 8> "$out/.lock"
flock 8
[ $# -gt 0 ] || set -- agent plugin example
for image; do
    case $image in
    agent) image agent weir-agent '["/usr/local/bin/weir-agent"]' '["--config", "/etc/weir/agent.yaml"]' ;;
    plugin) image plugin weir-device-plugin '["/usr/local/bin/weir-device-plugin"]' '["--config", "/etc/weir/plugin.yaml"]' ;;
    example) image example weir-example '[]' '["server"]' ;;
    esac
done
