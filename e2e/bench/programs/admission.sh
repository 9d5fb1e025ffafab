#!/bin/bash
# How long a real kubelet takes to admit pods with shares of a GPU, one after the other: from `SyncLoop ADD` in its log to
# `Pod Admit Result`, with the plugin's answers in between. Kubelet and plugin have real-time priority, so that other work
# on the machine does not change the figures. PODS (100), GPUS (8). Prints one line of JSON.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD/e2e/cluster
CGROUP=weir-bench
W=$PWD/${B:-build}/admission
# shellcheck source-path=SCRIPTDIR source=../../cluster/cluster.sh
. "$here/cluster.sh"
# shellcheck source-path=SCRIPTDIR source=../../cluster/weir.sh
. "$here/weir.sh"
SIM_GPUS=${GPUS:-8}
KUBELET_V=4
pods=${PODS:-100}

real_time() {
    chrt --all-tasks --fifo --pid 1 "$(pid_of "$1")"
}

admit_all() {
    local i
    for ((i = 0; i < pods; i++)); do
        pod "p$i" 10 true || return 1
        until_ok 60 ended "p$i" || {
            explain "p$i"
            return 1
        }
        pod_delete "p$i"
    done
}

check_machine
cluster_apart "$0" "$@"
trap 'trap - EXIT; cluster_down' EXIT
trap 'exit 1' TERM INT
{
    cluster_up "$B/bin/vector-add" "$B/lib/libweir.so" "$B"/simcuda/{libcuda.so.1,libnvidia-ml.so.1}
    weir_up
    real_time kubelet && real_time plugin || die "the kubelet and the plugin cannot have real-time priority"
    admit_all || exit 1
} >&2
[ -z "${LOG:-}" ] || cp "$W/kubelet.log" "$LOG"
e2e/bench/programs/admission.py "$W/kubelet.log"
