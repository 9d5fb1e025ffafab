# Sourced by tests on one machine without Kubernetes: a scratch folder with programs that every user may run, an agent,
# and clients whose user decides their level. Everything that was started is ended at exit.
# shellcheck shell=bash disable=SC2034
. e2e/tap.sh
work=$(mktemp -d)
chmod 755 "$work"
agent=
# The agent's configuration; a test that wants something else says so before prepare. Empty: the agent's default.
nvml=$(realpath "$B")/simcuda/libnvidia-ml.so.1 # makes it a process of the simulated machine, with its channel groups
[ "${GPU:-0}" = 0 ] || nvml= # the real GPU
hardware=false # hardwarePreemption
declare -A clients # pid -> what it is

# The pid of a client's program; the client itself is a shell around it.
program_of() { # PID
    local pid=$1 child
    while child=$(pgrep -P "$pid" | head -n 1) && [ -n "$child" ]; do pid=$child; done
    echo "$pid"
}

finish() {
    local pid
    # Only jobs that run: the pid of one that has ended may be another process's by now.
    for pid in $(jobs -pr); do
        [ -n "${clients[$pid]:-}" ] || continue
        kill -KILL "$(program_of "$pid")" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    # The compile service is a child of the agent and ends with it.
    [ -z "$agent" ] || { kill -KILL "$agent"; wait "$agent"; } 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

# The agent's configuration, with the rules from standard input.
configure() {
    {
        cat <<END
socket: $work/agent.sock
stateDir: $work/state
control: {socket: $work/control.sock}
metrics: {address: ""}
${hardware:+hardwarePreemption: $hardware}
${nvml:+nvml: $nvml}
standalone:
  rules:
END
        cat
    } >"$work/agent.yaml.new"
    mv "$work/agent.yaml.new" "$work/agent.yaml"
}

# Programs of ours that clients will run.
prepare() { # PROGRAM...
    mkdir "$work/state" "$work/bin" && mkdir -m 777 "$work/sim"
    cp -L "$B/simcuda/libcuda.so.1" "$B/lib/libweir.so" "$work/"
    cp "${@/#/$B/bin/}" "$work/bin/"
    chmod -R a+rX "$work/bin" "$work"/*.so*
    configure <<END
    - {uid: 65534, level: low}
    - {uid: 65533, level: normal}
    - {uid: 0, level: high}
END
    export WEIR_SIM_DIR=$work/sim
}

start_agent() {
    "$B/bin/weir-agent" --config "$work/agent.yaml" --standalone >"$work/agent.log" 2>&1 &
    agent=$!
    eventually 10 test -S "$work/control.sock"
}

status() { # JQ-ARGUMENT...
    "$B/bin/weirctl" status --json --socket "$work/control.sock" | jq "$@"
}

# Clients are under MPS from now on: what the simulated driver takes for a daemon.
under_mps() {
    mkdir "$work/mps" && touch "$work/mps/control"
    export CUDA_MPS_PIPE_DIRECTORY=$work/mps
}

# A program of ours as user UID, under libweir.
governed() { # UID PROGRAM ARGUMENTS...
    local uid=$1 program=$2
    shift 2
    setpriv --reuid="$uid" --regid="$uid" --clear-groups env LD_PRELOAD="$work/libweir.so" \
        WEIR_DRIVER="$work/libcuda.so.1" WEIR_SOCKET="$work/agent.sock" LD_LIBRARY_PATH="$work" \
        timeout -s KILL 900 "$work/bin/$program" "$@"
}

# A client that uses the GPU again and again, until stop_busy; its program is burst. FOLDER: of its files.
busy=
start_burst() { # FOLDER USER WHAT ARGUMENT...
    busy_folder=$1
    governed "$2" burst "${@:4}" --requests 100000000 --stop-file "$1/stop" --ready-file "$1/ready" >"$work/burst.log" 2>&1 &
    busy=$!
    clients[$busy]=burst
    check "$3 is at work" eventually 60 test -e "$1/ready"
}
# Of the highest level.
start_busy() {
    start_burst "$work" 0 "a busy client" --kernels 20 --gap-min-us 500 --gap-max-us 3000
}
stop_busy() {
    touch "$busy_folder/stop"
    check "the busy client's own values are right" wait "$busy"
    unset "clients[$busy]"
}
