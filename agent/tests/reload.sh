#!/bin/bash
# A running agent takes a new configuration: from its file, through a ConfigMap's links, at SIGHUP. It refuses a wrong one
# with its place. Entries of single GPUs apply to them; MPS daemons (stand-ins) come and go with the mode of their GPU.
# shellcheck disable=SC2317 # `check` and `becomes` call the functions
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
B=$(realpath "$B")
dir=$(mktemp -d /tmp/weir-reload-XXXXXX)
pid='' client=''
export WEIR_SIM_DIR=$dir/sim WEIR_SIM_GPUS=2
trap 'finish; rm -rf "$dir"' EXIT

finish() {
    for p in $pid $client $(cut -d' ' -f1 "$dir"/mps/*/daemon 2>/dev/null); do kill -KILL "$p"; done 2>/dev/null
    wait 2>/dev/null
}

becomes() { # TITLE COMMAND...: it succeeds within 20 s
    check "$1" eventually 20 "${@:2}"
}

fixed() {
    printf 'socket: %s/run/agent.sock\nstateDir: %s/state\ncontrol: {socket: %s/run/control.sock}\n' "$dir" "$dir" "$dir"
    printf 'metrics: {address: "127.0.0.1:%d"}\nnvml: %s/simcuda/libnvidia-ml.so.1\n' "$port" "$B"
    printf 'mps: {program: %s/bin/sim-mps-control, dir: %s/mps, check: 100ms}\n' "$B" "$dir"
}

# As the kubelet does: a new folder, then a new link renamed over the old one.
publish() { # MORE
    local version=..$RANDOM$RANDOM old
    old=$(readlink "$dir/etc/..data")
    mkdir -p "$dir/etc/$version"
    { fixed; echo "$1"; } >"$dir/etc/$version/agent.yaml"
    ln -s "$version" "$dir/etc/..data_tmp"
    mv -T "$dir/etc/..data_tmp" "$dir/etc/..data"
    [ -z "$old" ] || rm -r "${dir:?}/etc/$old"
}

start() {
    ulimit -Sn 1024
    "$B/bin/weir-agent" --config "$dir/etc/agent.yaml" --standalone 2>>"$dir/log" &
    pid=$!
}

metric() { # LINE
    curl -s "http://127.0.0.1:$port/metrics" | grep -xF "$1" >/dev/null
}
fits_clients() { # N: the limit of open files suffices for N clients
    metric 'weir_config_last_reload_successful 1' && [ "$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")" -ge $((7 * $1)) ]
}
ctl() {
    "$B/bin/weirctl" -s "$dir/run/control.sock" "$@"
}
policy_is() {
    [ "$(ctl policy)" = "$1" ]
}
status_says() {
    ctl status | grep -F "$1"
}
status_is_silent() {
    ! status_says 'stays in force'
}
gpu_has() { # INDEX KEY VALUE
    ctl status --json | jq -e ".gpus[] | select(.index == $1) | .$2 == \"$3\""
}
ready() {
    [ "$(curl -s -o "$dir/ready" -w '%{http_code}' "http://127.0.0.1:$port/readyz")" = "$1" ]
}
says() {
    grep -qF "$1" "$dir/log"
}
hash_is_of_file() {
    metric "weir_config_hash $((16#$(sha256sum "$dir/etc/agent.yaml" | cut -c1-12)))"
}
has() {
    [ -e "$dir/mps/$1" ]
}
has_not() {
    [ ! -e "$dir/mps/$1" ]
}
daemon() {
    cut -d' ' -f1 "$dir/mps/$gpu1/daemon"
}
tell() {
    echo "$1" | CUDA_MPS_PIPE_DIRECTORY=$dir/mps/$gpu1/pipe "$B/bin/sim-mps-control"
}

port=$(python3 e2e/bench/lib/free_port.py)
mkdir -p "$dir/etc"
ln -s ..data/agent.yaml "$dir/etc/agent.yaml"
publish 'policy: hpf'
start
becomes "an agent with GPUs is ready" ready 200
becomes "a metric has the configuration's hash" hash_is_of_file
gpu1=$(ctl status --json | jq -r '.gpus[] | select(.index == 1) | .gpu')
sleep 100 &
client=$!

publish 'limits: {clients: 2500}'
becomes "a higher limit of clients raises that of open files" fits_clients 2500
publish 'policy: wfq'
becomes "a ConfigMap's new content is taken" policy_is wfq
becomes "and counted" metric 'weir_config_reloads_total{result="taken"} 2'
becomes "with its hash" hash_is_of_file
publish 'policy: wqf'
becomes "a mistake is logged with its place" says "agent.yaml:7:9: expected a policy (hpf, whpf, ffs, static, dynamic, wfq, levels, coexec), not \`wqf\`; the configuration from before stays"
becomes "and in a metric" metric 'weir_config_last_reload_successful 0'
becomes "and in the status" status_says 'agent.yaml:7:9: expected a policy'
check "the previous configuration stays in force" policy_is wfq
publish 'policy: ffs'
becomes "a good one is taken again" policy_is ffs
becomes "as the metric says" metric 'weir_config_last_reload_successful 1'
check "and the status is silent" status_is_silent

ctl policy static >/dev/null
kill -HUP "$pid"
becomes "SIGHUP reads it again" policy_is ffs
publish 'socket: /elsewhere/agent.sock'
becomes "a repeated key is a mistake, too" says "key \`socket\` is there twice"
publish $'policy: hpf\ncompile: {helpers: 7}'
becomes "keys that need a restart are logged" says "waits for the agent's next start: compile.helpers"
becomes "and in a metric" metric 'weir_config_restart_needed 1'
check "the rest is taken" policy_is hpf

publish $'policy: hpf\ngpus:\n- {index: 1, policy: dynamic, mode: mps}'
becomes "one GPU has its own policy" gpu_has 1 policy dynamic
check "the other has the node's" gpu_has 0 policy hpf
becomes "and its MPS daemon answers" has "$gpu1/ready"
becomes "as the metric says" metric "weir_mps_up{gpu=\"$gpu1\"} 1"
check "the other has none" test "$(find "$dir/mps" -mindepth 1 -maxdepth 1 | wc -l)" = 1
first=$(daemon)
kill -KILL "$first"
becomes "a killed daemon is started again" metric "weir_mps_starts_total{gpu=\"$gpu1\"} 2"
becomes "and answers" metric "weir_mps_up{gpu=\"$gpu1\"} 1"
tell "sim_enter $client"
kept=$(daemon)
kill -KILL "$pid"
wait "$pid" 2>/dev/null
check "the daemon goes on without the agent" kill -0 "$kept"
start
becomes "the next agent finds it" metric "weir_mps_up{gpu=\"$gpu1\"} 1"
becomes "and started none" metric "weir_mps_starts_total{gpu=\"$gpu1\"} 0"
check "it is the same" test "$(daemon)" = "$kept"
publish 'mode: timeslice'
becomes "with another mode it gets no new clients" has_not "$gpu1/ready"
check "its clients go on" kill -0 "$kept"
tell "sim_leave $client"
becomes "with the last of them it ends" has_not "$gpu1/daemon"
check "it is gone" bash -c "! grep '^State:.[RSDT]' /proc/$kept/status"
publish $'mode: mps\nmps: {}'
becomes "a repeated section is a mistake" says "key \`mps\` is there twice"
kill -TERM "$pid"
wait "$pid" 2>/dev/null
pid=
check "a stopped agent has stopped" has_not "$gpu1/ready"
exit $failed
