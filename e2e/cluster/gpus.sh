# Sourced after work.sh: which GPUs pods get on a node with several, and how they get them.
# shellcheck shell=bash

# A container that records what it was given and stays until it is told to end.
resident() { # NAME
    echo "env | grep -E '^(WEIR|NVIDIA|CUDA)_' > /shared/.$1; grep -E ' /(etc/ld.so.preload|[^ ]*libcuda.so.1) ' /proc/mounts >> /shared/.$1;
        mv /shared/.$1 /shared/$1.given; until [ -e /shared/$1.stop ]; do sleep 1; done"
}

has_given() {
    test -e "$W/shared/$1.given"
}

# resides NAME SHARES: creates such a pod and waits for its record.
resides() {
    rm -f "$W/shared/$1".*
    pod "$1" "$2" "$(resident "$1")" && until_ok 20 has_given "$1" || {
        explain "$1"
        return 1
    }
}

# The same with two containers; the second is NAME-2.
resides_twice() { # NAME SHARES
    local first second
    rm -f "$W/shared/$1".* "$W/shared/$1-2".*
    first=$(pod_manifest "$1" "$2" "$(resident "$1")")
    second=$(resident "$1-2")
    api POST /api/v1/namespaces/default/pods "$(jq --arg command "$second" '.spec.containers +=
        [.spec.containers[0] | .name = "second" | .command[2] = $command]' <<< "$first")" > /dev/null &&
        until_ok 20 has_given "$1" && until_ok 20 has_given "$1-2" || {
        explain "$1"
        return 1
    }
}

# given NAME VARIABLE
given() {
    sed -n "s/^$2=//p" "$W/shared/$1.given"
}

# mounted NAME PATTERN: the container has such a mount.
mounted() {
    grep -q "^[^ =]* [^ ]*$2 " "$W/shared/$1.given"
}

# The indices of GPUs, given by UUIDs separated by commas.
numbers() {
    local uuid
    for uuid in ${1//,/ }; do
        LD_LIBRARY_PATH=$W/host/driver "$B/bin/nvml-view" | sed -n "s/^gpu \([0-9]*\) $uuid\$/\1/p"
    done | paste -sd ' '
}

# expect WHAT HAVE WANT
expect() {
    [ "$2" = "$3" ] && return
    echo "# $1: '$2', not '$3'"
    return 1
}

# plugin_with LINE...: restarts the plugin with these lines in its configuration.
plugin_with() {
    local before
    before=$(registrations)
    [ -f "$W/plugin-plain.yaml" ] || cp "$W/plugin.yaml" "$W/plugin-plain.yaml"
    stop plugin
    {
        cat "$W/plugin-plain.yaml"
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } > "$W/plugin.yaml"
    start_plugin
    until_ok 30 registered_since "$before" && until_ok 30 allocatable_is $((SIM_GPUS * 100))
}

# Parts are on GPU 0 and 1 of NUMA node 0; a whole GPU is next to them, and a pair is on the other NUMA node.
packed() {
    resides a 30 && resides b 60 && resides c 50 && resides one 100 && resides two 200 || return 1
    expect "a has" "$(numbers "$(given a WEIR_GPU)")" 0 &&
        expect "b has" "$(numbers "$(given b WEIR_GPU)")" 0 &&
        expect "c has" "$(numbers "$(given c WEIR_GPU)")" 1 &&
        expect "one has" "$(numbers "$(given one NVIDIA_VISIBLE_DEVICES)")" 2 &&
        expect "two has" "$(numbers "$(given two NVIDIA_VISIBLE_DEVICES)")" "4 5" || return 1
    # A part has libweir; whole GPUs do not. All have the driver, and see only their own GPUs.
    expect "a sees" "$(given a CUDA_VISIBLE_DEVICES)" "$(given a WEIR_GPU)" &&
        expect "two sees" "$(given two CUDA_VISIBLE_DEVICES)" "$(given two NVIDIA_VISIBLE_DEVICES)" &&
        mounted a /etc/ld.so.preload && mounted a libcuda.so.1 && mounted two libcuda.so.1 &&
        ! mounted one /etc/ld.so.preload && expect "one is of Weir" "$(given one WEIR_GPU)" "" || return 1
    # Both containers of a pod are on GPU 1, which has room.
    resides_twice both 20 && expect "both have" \
        "$(numbers "$(given both WEIR_GPU),$(given both-2 WEIR_GPU)")" "1 1"
}

# Work on one GPU does not affect clients of another.
spread() {
    local waits low
    plugin_with 'allocation: spread' && resides_twice both 20 || return 1
    expect "both have" "$(numbers "$(given both WEIR_GPU),$(given both-2 WEIR_GPU)")" "0 4" || return 1
    starts low 20 "$(filler low)" && qos=guaranteed starts high 20 "$(worker high)" &&
        has_level low 0 && has_level high 2 || return 1
    low=$(client low .gpu)
    expect "low and high have" "$(numbers "$low,$(client high .gpu)")" "1 5" || return 1
    waits=$(client low .waits)
    works high && works high && works low || return 1
    expect "low has waited" "$(client low .waits)" "$waits" &&
        expect "demand on low's GPU" "$(status | jq --arg gpu "$low" '[.gpus[] | select(.gpu == $gpu).demand[]] | add')" 0 &&
        finishes low high && clear_pods && plugin_with
}

# CDI: containerd provides the GPUs by name with the driver; Weir's own mounts are unchanged.
cdi() {
    local strategy
    [ -n "$CONTAINERD" ] || return 77
    for strategy in cdi-cri cdi-annotations; do
        plugin_with "deviceListStrategy: $strategy" && resides part 30 && resides two 200 || return 1
        expect "part is given" "$(given part NVIDIA_VISIBLE_DEVICES)" void &&
            expect "part has" "$(numbers "$(given part WEIR_GPU)")" 0 &&
            mounted part /etc/ld.so.preload && ! mounted two /etc/ld.so.preload &&
            grep -q 'libcuda.so.1 .*nosuid' "$W/shared/two.given" &&
            pod work 20 vector-add && succeeds work 30 || return 1
        clear_pods
    done
    jq -e '.kind == "weir.dev/gpu" and (.devices | length) == 8' "$W/cdi/weir.dev-gpu.json" > /dev/null && plugin_with
}

# NVML shows a container its own GPU, limit and process, while others use the same GPU.
nvml() {
    starts low 20 "$(filler low)" && pod view 30 'nvml-view --allocate 40 && nvml-view-linked' && succeeds view 30 &&
        finishes low || return 1
    pod_log view > "$W/view"
    expect "NVML shows" "$(grep -cxE 'gpus 1|gpu 0 GPU-[-0-9a-f]*|memory total 30[67] used 40 free 26[67] MiB|processes 1|process nvml-view 40 MiB' "$W/view")" 7 || {
        sed 's/^/# /' "$W/view"
        return 1
    }
}
