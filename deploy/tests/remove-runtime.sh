#!/bin/bash
# What remove-runtime.sh takes from a node, and what it leaves to a container that has the library mounted.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
if [ "$(id -u)" != 0 ]; then
    echo "ok - removal # SKIP mounts and guarded files are root's"
    exit 0
fi
# With processes of its own: the script waits for agents in pods, and tests beside this one have some.
[ -n "${APART:-}" ] || APART=1 exec unshare --pid --fork --kill-child --mount-proc "$0"
dir=$(mktemp -d /tmp/weir-remove-XXXXXX)
trap 'chattr -R -f -i "$dir"; rm -rf "$dir"' EXIT

fill() {
    mkdir -p "$dir"/lib/weir/{1.0,1.1} "$dir"/run/weir/GPU-a "$dir"/run/weir-agent/state/GPU "$dir"/cache/weir "$dir"/cdi
    touch "$dir"/lib/weir/{1.0,1.1}/{libweir.so,ld.so.preload} "$dir"/run/weir/agent.sock "$dir"/run/weir/GPU-a/agent.sock "$dir"/run/weir/.hidden \
        "$dir/cache/weir/object" "$dir/cdi/weir.dev-gpu.json" "$dir/run/weir-agent/state/GPU/demand-0" "$dir/other"
    # Where the file system knows no such flag nothing is guarded.
    chattr -f +i "$dir/run/weir-agent/state/GPU/demand-0"
}
remove() {
    deploy/remove-runtime.sh "$dir/lib/weir" "$dir/run/weir" "$dir/run/weir-agent" "$dir/cache/weir" "$dir/cdi/weir.dev-gpu.json"
}
left() {
    (cd "$dir" && find . -mindepth 2 | sort | tr '\n' ' ')
}

fill
touch "$dir/target"
# A container: a mount namespace of its own, in which the library is mounted.
mkfifo "$dir/mounted"
unshare -m sh -c 'mount --bind "$1/lib/weir/1.0/libweir.so" "$1/target" && echo > "$1/mounted" && exec sleep 1000' - "$dir" &
container=$!
read -r _ < "$dir/mounted"
check "with a container that uses 1.0" remove
check "its library stays, and where it finds an agent" test "$(left)" = \
    "./cdi/weir.dev-gpu.json ./lib/weir ./lib/weir/1.0 ./lib/weir/1.0/ld.so.preload ./lib/weir/1.0/libweir.so ./run/weir ./run/weir/GPU-a "
kill $container
wait $container 2> /dev/null
fill
check "with none" remove
check "nothing stays" test -z "$(left)"
check "but what is not ours" test -e "$dir/other"
check "again, with nothing there" remove
# A folder that is not Weir's alone, like /home/kubernetes/bin.
fill
mkdir "$dir/lib/weir/others"
touch "$dir/lib/weir/others/program"
check "with what others have beside the library" remove
check "that stays, and nothing of ours" test "$(left)" = "./lib/weir ./lib/weir/others ./lib/weir/others/program "
exit $failed
