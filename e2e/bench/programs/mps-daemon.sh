#!/bin/bash
# A real agent with NVIDIA's MPS daemon, which serves two users with preemption. Clients die, a kernel faults, the daemon is
# killed, the agent is killed, the mode changes. Prints what clients see; takes half a minute.
#
#   mps-daemon.sh FOLDER [PROGRAM]     FOLDER: of an unpacked bundle; PROGRAM: instead of nvidia-cuda-mps-control
#
# $NVML: instead of the driver's library (with the simulated GPU, a dry run). Needs root, for the second user.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d /tmp/weir-mps-XXXXXX) || exit
chmod 755 "$dir"
root=$1
program=${2:-} client=$dir/client.py gpu='' agent=''
install -m 644 "$here/mps_client.py" "$client"
began=${EPOCHREALTIME/./}
trap finish EXIT

say() {
    printf '\n== %s ms: %s\n' $(((${EPOCHREALTIME/./} - began) / 1000)) "$*"
}

configure() { # MODE KEEP
    cat > "$dir/new.yaml" << Y
socket: $dir/run/agent.sock
stateDir: $dir/state
control: {socket: $dir/run/control.sock}
metrics: {address: "127.0.0.1:19477"}
mode: $1
mps: {dir: $dir/mps, keep: $2, check: 300ms${program:+, program: $program}}
standalone: {rules: [{uid: 1001, level: high}, {uid: 0, level: low}]}
${NVML:+nvml: $NVML}
Y
    mv "$dir/new.yaml" "$dir/agent.yaml"
}

start() {
    "$root/bin/weir-agent" --standalone --config "$dir/agent.yaml" 2>> "$dir/log" &
    agent=$!
}

metrics() {
    python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:19477/metrics").read().decode())' |
        grep -E '^weir_(mps|evictions_total|waits_total)'
}

ready() {
    for _ in $(seq 100); do
        compgen -G "$dir/mps/*/ready" > /dev/null && break
        sleep 0.05
    done
    gpu=$(basename "$dir"/mps/GPU-*)
    [ -e "$dir/mps/$gpu/ready" ] && echo "ready: $gpu"
}

# A client of the daemon at the lower level; other(): another user, at the upper level. With libweir if $weir is set.
run() { # NAME SECONDS KERNEL_MS [fault]
    env CUDA_MPS_PIPE_DIRECTORY="$dir/mps/$gpu/client" ${weir:+LD_PRELOAD="$root/lib/libweir.so"} \
        WEIR_SOCKET="$dir/run/agent.sock" python3 "$client" "$@"
}
other() {
    env CUDA_MPS_PIPE_DIRECTORY="$dir/mps/$gpu/client" ${weir:+LD_PRELOAD="$root/lib/libweir.so"} \
        WEIR_SOCKET="$dir/run/agent.sock" GAP=0.01 setpriv --reuid 1001 --clear-groups python3 "$client" "$@"
}

# NVIDIA's processes that use our pipes.
daemons() {
    local process
    for process in /proc/[0-9]*; do
        if grep -qa "CUDA_MPS_PIPE_DIRECTORY=$dir" "$process/environ" 2> /dev/null &&
            grep -q '^nvidia' "$process/comm" 2> /dev/null; then
            echo "${process#/proc/} $(tr '\0' ' ' < "$process/cmdline")"
        fi
    done
}

finish() {
    [ -z "$agent" ] || kill -KILL "$agent" 2> /dev/null
    daemons | while read -r pid name; do
        echo "left: $name"
        kill -KILL "$pid"
    done
    rm -rf "$dir"
}

# Kills a client in a kernel of so many ms, while another one runs short kernels.
kill_one() { # KERNEL_MS
    say "a client is killed in a kernel of $1 ms"
    run victim 9 "$1" &
    local victim=$!
    run bystander 1.3 2 &
    local bystander=$!
    sleep 0.8
    kill -KILL "$(pgrep -P $victim || echo $victim)"
    wait $bystander $victim 2> /dev/null
}

say "start"
configure mps true
start
ready
daemons
export GRID=264 THREADS=1024
say "the upper level alone, with libweir, another user"
weir=1 other high 1.5 0.3
say "above one with kernels of 20 ms, both with libweir"
weir=1 run low 3.5 20 &
low=$!
sleep 0.8
weir=1 other high 2 0.3
wait $low
metrics
say "the same without libweir"
run low 2.5 20 &
low=$!
sleep 0.5
other high 1.5 0.3
wait $low
export GRID=1 THREADS=32
for ms in 2 50 500; do kill_one $ms; done
say "a fault; the others end 1.5 s later"
LINGER=1.5 run bystander 5 2 &
bystander=$!
sleep 0.6
run faulty 1 1 fault
sleep 0.7
metrics | grep fault
run early 0.1 1
wait $bystander
sleep 0.8
metrics | grep fault
run after 0.1 1
say "the daemon is killed"
run bystander 3 2 &
bystander=$!
sleep 0.6
kill -KILL "$(cut -d' ' -f1 "$dir/mps/$gpu/daemon")"
wait $bystander
ready
run after 0.1 1
metrics
say "the agent is killed, and started again"
run bystander 2.5 2 &
bystander=$!
sleep 0.6
kill -KILL $agent
start
ready
wait $bystander
say "mode timeslice: it ends with its client"
run bystander 2 2 &
bystander=$!
sleep 0.6
configure timeslice true
wait $bystander
for _ in $(seq 60); do
    [ -e "$dir/mps/$gpu/daemon" ] || break
    sleep 0.1
done
daemons
say "mode mps; the agent ends, and takes it along"
configure mps false
ready
run last 0.1 1
kill $agent
wait $agent
agent=
daemons
say "end"
cat "$dir/log"
