#!/bin/bash
# NVML in a container with a part of a simulated GPU shows its GPU, its limit, its memory and its processes only. This
# holds for programs that are linked with NVML, that open it, and for Python. Without libweir, agent or limit NVML is
# unchanged.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=true
prepare nvml-view nvml-view-linked filler
cp -L "$B/simcuda/libnvidia-ml.so.1" "$B/lib/libweir-nvml.so" "$work/"
chmod a+r "$work"/*.so*
export WEIR_SIM_SMS=1 WEIR_SIM_MEMORY=1G WEIR_SIM_GPUS=2
cat >>"$work/agent.yaml" <<END
    - {uid: 65532, level: low, memory: 96Mi}
END

# As in a pod: both libraries preloaded, and what the device plugin sets.
in_pod() { # UID COMMAND...
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid="$uid" --clear-groups env LD_PRELOAD="$work/libweir.so:$work/libweir-nvml.so" \
        WEIR_DRIVER="$work/libcuda.so.1" WEIR_SOCKET="$work/agent.sock" LD_LIBRARY_PATH="$work" \
        ${gpu:+WEIR_GPU="$gpu"} timeout -s KILL 60 "$@"
}
shows() { # TEXT FILE: that line is in it
    grep -qx "$1" "$2" || { sed 's/^/# /' "$2"; false; }
}

LD_LIBRARY_PATH=$work "$work/bin/nvml-view" >"$work/card" 2>&1
report $? "without libweir NVML is there"
shows "gpus 2" "$work/card" && shows "memory total 1024 used 0 free 1024 MiB" "$work/card"
report $? "and shows the machine"
CUDA_VISIBLE_DEVICES=1 LD_LIBRARY_PATH=$work "$work/bin/nvml-view" --allocate 7 | sed -n '/^gpu 1/,$p' >"$work/view"
check "and what is on which GPU" shows "memory total 1024 used 7 free 1017 MiB" "$work/view"
in_pod 65532 "$work/bin/nvml-view" >"$work/view" 2>&1
check "no agent: nothing else is shown" diff "$work/card" "$work/view"
maps() { LD_PRELOAD="$work/libweir.so:$work/libweir-nvml.so" LD_LIBRARY_PATH=$work cat /proc/self/maps; }
! maps | grep libnvidia-ml >/dev/null
report $? "a program that never asks does not load NVML"

check "the agent is up" start_agent
gpu=$(sed -n 's/^gpu 1 //p' "$work/card")
cat >"$work/view.py" <<'END'
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
n, device, memory = ctypes.c_uint(), ctypes.c_void_p(), Memory()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(n)) == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
print("gpus", n.value)
print("memory total", memory.total >> 20, "used", memory.used >> 20, "free", memory.free >> 20, "MiB")
END
# GPU 0, on which the clients' memory is.
gpu=$(sed -n 's/^gpu 0 //p' "$work/card")
in_pod 0 "$work/bin/nvml-view" --allocate 200 --stop-file "$work/stop" --ready-file "$work/ready" >"$work/other" 2>&1 &
clients[$!]=other
check "somebody else uses the GPU" eventually 20 test -e "$work/ready"
for program in nvml-view nvml-view-linked; do
    in_pod 65532 "$work/bin/$program" --allocate 40 >"$work/view" 2>&1
    report $? "$program runs"
    shows "gpus 1" "$work/view" && shows "gpu 0 $gpu" "$work/view"
    report $? "$program sees the container's GPU"
    shows "memory total 96 used 40 free 56 MiB" "$work/view" &&
        check "$program sees the limit, and what is used of it" shows "memory_v2 total 96 used 40 free 56 reserved 0 MiB" "$work/view"
    check "$program sees itself" shows "process .*/$program 40 MiB" "$work/view"
done
in_pod 65532 python3 "$work/view.py" >"$work/view" 2>&1
shows "gpus 1" "$work/view" && shows "memory total 96 used 0 free 96 MiB" "$work/view"
report $? "Python sees it, too"

# Where cgroups can be made: another's processes are not the container's.
root=$(awk '$3 == "cgroup2" || $4 ~ /(^|,)pids(,|$)/ { print $2; exit }' /proc/self/mounts)
group=$root/weir-nvml-$$
if [ -n "$root" ] && mkdir "$group" 2>/dev/null; then
    (echo "$BASHPID" >"$group/cgroup.procs" && in_pod 65532 "$work/bin/nvml-view" --allocate 10) >"$work/view" 2>&1
    shows "processes 1" "$work/view" && shows "process .*/nvml-view 10 MiB" "$work/view"
    report $? "other containers' processes are not shown"
    rmdir "$group"
else
    echo "ok - other containers' processes are not shown # SKIP no cgroup can be made here"
fi

in_pod 0 "$work/bin/nvml-view" >"$work/view" 2>&1
check "without a limit the card's memory is shown" shows "memory total 1024 used 200 free 824 MiB" "$work/view"
gpu=$(sed -n 's/^gpu 1 //p' "$work/card")
in_pod 65532 "$work/bin/nvml-view" >"$work/view" 2>&1
shows "gpus 1" "$work/view" && shows "gpu 0 $gpu" "$work/view" && shows "memory total 96 used 0 free 96 MiB" "$work/view"
report $? "a container of another GPU sees that, as its number 0"
gpu=
in_pod 65532 "$work/bin/nvml-view" >"$work/view" 2>&1
check "where no GPU is named all are shown" shows "gpus 2" "$work/view"
rm "$work/libnvidia-ml.so.1"
in_pod 65532 "$work/bin/nvml-view" >"$work/view" 2>&1
[ $? -eq 1 ] && grep -q 'nvmlInit_v2: .*Not Found' "$work/view"
report $? "without NVML a program is told so"
touch "$work/stop"
[ $failed -eq 0 ] || { tail -n 5 "$work"/*.log; exit 1; }
