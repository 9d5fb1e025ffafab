#!/bin/bash
# Which versions of the library remove-versions.sh takes from a node.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
if [ "$(id -u)" != 0 ]; then
    echo "ok - versions # SKIP mounts are root's"
    exit 0
fi
dir=$(mktemp -d /tmp/weir-versions-XXXXXX)
trap 'rm -rf "$dir"' EXIT

# Versions 91 to 94 by the installer (other tests may have smaller ones mounted), and one that somebody else put there.
fill() {
    local version
    for version in 91.0 92.0+a 93.0 94.0; do
        mkdir -p "$dir/lib/$version"
        touch "$dir/lib/$version/"{libweir.so,libweir-nvml.so,libweir-mps.so,ld.so.preload}
    done
    mkdir -p "$dir/lib/other"
    touch "$dir/lib/other/libweir.so"
}
remove() {
    deploy/remove-versions.sh "$dir/lib" 94.0 "$dir/plugins"
}
left() { # VERSION...
    diff <(printf '%s\n' "$@" other) <(ls "$dir/lib")
}
# note [VERSION]: what the kubelet writes, with an answer of another plugin's, and one of ours that names VERSION.
note() {
    local entry='{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":["d"]},"AllocResp":"%s"}' answer
    answer=$(printf '\n\12/host/lib/%s/libweir.so\0' "${1:-}" | base64 -w 0)
    # shellcheck disable=SC2059
    printf "{\"Data\":{\"PodDeviceEntries\":[$entry,$entry],\"RegisteredDevices\":{}},\"Checksum\":7}" CgA= "$answer" > "$dir/plugins/kubelet_internal_checkpoint"
}

mkdir "$dir/plugins"
fill
check "without a kubelet" remove
check "everything stays" left 91.0 92.0+a 93.0 94.0
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$dir/plugins/kubelet.sock"

touch "$dir/target"
mkfifo "$dir/mounted"
# A container: a mount namespace of its own. The file that it has is replaced by another of its name.
unshare -m sh -c 'mount --bind "$1/lib/92.0+a/libweir.so" "$1/target" && echo > "$1/mounted" && exec sleep 1000' - "$dir" &
container=$!
read -r _ < "$dir/mounted"
check "with a container that has 92.0+a" remove
check "it stays beside the newest, and what is not ours" left 92.0+a 94.0
touch "$dir/lib/92.0+a/new"
mv "$dir/lib/92.0+a/"{new,libweir.so}
check "with a newer file in its place" remove
check "it still does" left 92.0+a 94.0
kill $container
wait $container 2> /dev/null

fill
touch "$dir/lib/91.0/.new.123"
check "with a file that an installer had no time for" remove
check "its version goes all the same" left 94.0
fill
note 91.0
check "with a pod whose container does not run" remove
check "what it was given stays" left 91.0 94.0
fill
echo '{"Data":{"PodDeviceEntries":[{"PodUID":"u","Answer":"?"}]}}' > "$dir/plugins/kubelet_internal_checkpoint"
check "with a note that nobody understands" remove
check "everything stays, too" left 91.0 92.0+a 93.0 94.0
note
check "with none" remove
check "the newest stays alone" left 94.0
exit $failed
