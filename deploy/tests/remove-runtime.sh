#!/bin/bash
# What remove-runtime.sh takes from a node, and what it leaves to a container that has the library mounted.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
if [ "$(id -u)" != 0 ]; then
    echo "ok - removal # SKIP mounts and guarded files are root's"
    exit 0
fi
# With processes of its own, which it kills at its end.
[ -n "${APART:-}" ] || APART=1 exec unshare --pid --fork --kill-child --mount-proc "$0"
dir=$(mktemp -d /tmp/weir-remove-XXXXXX)
own=$(mktemp -d /tmp/weir-remove-XXXXXX) # of a pod
trap 'chattr -R -f -i "$dir"; rm -rf "$dir" "$own"' EXIT

fill() {
    mkdir -p "$dir"/lib/weir/{1.0,1.1} "$dir"/run/weir{/GPU-a,-agent/state/GPU,-mps} "$dir"/cache/weir "$dir"/cdi
    touch "$dir"/lib/weir/{1.0,1.1}/{libweir.so,ld.so.preload} "$dir"/run/weir/agent.sock "$dir"/run/weir/GPU-a/agent.sock "$dir"/run/weir/.hidden \
        "$dir/cache/weir/object" "$dir/cdi/weir.dev-gpu.json" "$dir/run/weir-agent/state/GPU/demand-0" "$dir/other"
    # Where the file system knows no such flag nothing is guarded.
    chattr -f +i "$dir/run/weir-agent/state/GPU/demand-0"
}
remove() {
    deploy/remove-runtime.sh "$dir/lib/weir" "$dir/run/weir" "$dir"/run/weir-{agent,mps} "$dir/cache/weir" "$dir/cdi/weir.dev-gpu.json"
}
gives_up() {
    ! WAIT_SECONDS=0 remove
}
left() {
    (cd "$dir" && find . -mindepth 2 | sort | tr '\n' ' ')
}

fill
touch "$dir/target"
mkdir "$dir/folder" "$own/fake"
mkfifo "$dir/mounted"
# A container: a mount namespace of its own, in which something is mounted.
contain() { # COMMAND: mounts
    unshare -m sh -c 'cd "$1" && eval "$2"; echo > mounted; exec sleep 1000' - "$dir" "$1" &
    container=$!
    read -r _ < "$dir/mounted"
}
end() {
    kill $container
    wait $container 2> /dev/null
}
for folder in weir-agent weir-mps; do
    contain "mount --bind run/$folder folder"
    check "it gives up while a container of Weir has $folder" gives_up
    check "and nothing is gone" test -e "$dir/lib/weir/1.0/libweir.so" -a -e "$dir/run/weir-agent/state/GPU/demand-0"
    end
done
# What a pod can do: a process with the agent's name, and a mount of a folder with the path of ours in a file system of
# its own.
cp "$(type -P sleep)" "$own/weir-agent"
"$own/weir-agent" 1000 &
named=$!
echo "0::/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice/cri-containerd-1.scope" > "$own/cgroup"
mount --bind "$own/cgroup" /proc/$named/cgroup
contain "mount -t tmpfs none $own/fake && mkdir -p $own/fake$dir/run/weir-agent && mount --bind $own/fake$dir/run/weir-agent folder"
WAIT_SECONDS=0 check "with pods whose processes look like an agent" remove
check "nothing stays" test -z "$(left)"
end
kill $named
umount /proc/$named/cgroup 2> /dev/null
fill
contain 'mount --bind lib/weir/1.0/libweir.so target'
check "with a container that uses 1.0" remove
check "its library stays, and where it finds an agent" test "$(left)" = \
    "./cdi/weir.dev-gpu.json ./lib/weir ./lib/weir/1.0 ./lib/weir/1.0/ld.so.preload ./lib/weir/1.0/libweir.so ./run/weir ./run/weir/GPU-a "
end
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
