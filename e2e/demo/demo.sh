#!/bin/bash
# Two clients of different priority share the GPU: the real one where there is one, else the simulated
# one. Three runs: HIGH alone, HIGH beside LOW without Weir, HIGH beside LOW with Weir. The last line
# tells how much slower HIGH's requests became.
set -euo pipefail

B=${B:-build}
tmp=$(mktemp -d)
chmod 755 "$tmp" # LOW is another user
agent=''
low=''
low_user=65534

finish() {
    local pid
    for pid in $low $agent; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$tmp"
}
trap finish EXIT

fail() {
    echo "demo: $*" >&2
    tail -n 3 "$tmp"/*.log >&2 2>/dev/null || true
    exit 1
}

# Waits until there is a file, or its program is gone.
appears() { # FILE PID
    for _ in $(seq 300); do
        [ ! -e "$1" ] || return 0
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    return 1
}

# The driver of a real GPU, if both are there.
real_driver() {
    local path
    command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || return 1
    for path in /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib/wsl/lib; do
        if [ -e "$path/libcuda.so.1" ]; then
            echo "$path/libcuda.so.1"
            return 0
        fi
    done
    ldconfig -p 2>/dev/null | awk '/libcuda\.so\.1.*x86-64/ {print $NF; found = 1; exit} END {exit !found}'
}

# LOW's kernels are several times longer than HIGH's, and a request of HIGH is many kernels: the case
# in which first come, first served hurts most. Simulated blocks last a fixed time, asleep, so the
# figures do not depend on the machine's speed.
choose_gpu() {
    if driver=$(real_driver); then
        gpu=$(nvidia-smi -L | head -1 | sed 's/^GPU 0: //; s/ (.*//')
        high_options=(--gpu --length-us 175 --kernels 20 --requests 200)
        low_options=(--gpu --waves 8)
    else
        gpu="simulated GPU"
        cp -L "$B/simcuda/libcuda.so.1" "$tmp/libcuda.so.1"
        driver=$tmp/libcuda.so.1
        mkdir -m 777 "$tmp/sim"
        export WEIR_SIM_DIR=$tmp/sim WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=1000
        high_options=(--kernels 40 --requests 12 --gap-min-us 10000 --gap-max-us 30000)
        low_options=(--waves 8)
    fi
    export WEIR_DRIVER=$driver
    LD_LIBRARY_PATH=$(dirname "$driver")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
}

start_agent() {
    cat >"$tmp/agent.yaml" <<END
socket: $tmp/agent.sock
stateDir: $tmp/state
control:
  socket: $tmp/control.sock
metrics:
  address: ""
standalone:
  rules:
    - uid: $low_user
      level: low
    - uid: 0
      level: high
END
    mkdir -p "$tmp/state"
    "$B/bin/weir-agent" --config "$tmp/agent.yaml" --standalone 2>"$tmp/agent.log" &
    agent=$!
    export WEIR_SOCKET=$tmp/agent.sock
    appears "$WEIR_SOCKET" "$agent" || fail "the agent does not start"
}

# $preload: libweir.so or nothing.
run_high() { # NAME
    LD_PRELOAD=$preload "$tmp/burst" "${high_options[@]}" >"$tmp/$1.json" 2>"$tmp/$1.log" ||
        fail "HIGH failed ($1)"
}

start_low() { # NAME
    rm -f "$tmp/stop"
    LD_PRELOAD=$preload setpriv --reuid=$low_user --regid=$low_user --clear-groups \
        "$tmp/filler" "${low_options[@]}" --ready-file "$tmp/low/$1" --stop-file "$tmp/stop" \
        >"$tmp/$1-low.json" 2>"$tmp/$1-low.log" &
    low=$!
    appears "$tmp/low/$1" "$low" || fail "LOW does not start ($1)"
}

stop_low() { # NAME
    touch "$tmp/stop"
    wait "$low" || fail "LOW failed ($1)"
    low=
}

shared() { # NAME
    start_low "$1"
    run_high "$1"
    [ -z "$preload" ] || "$B/bin/weirctl" --socket "$tmp/control.sock" status --json >"$tmp/status.json" ||
        fail "weirctl status failed"
    stop_low "$1"
}

figure() { # NAME FIELD
    jq -r ".$2" "$tmp/$1.json"
}

slowdown() { # NAME
    jq -rn --slurpfile a "$tmp/alone.json" --slurpfile b "$tmp/$1.json" \
        '$b[0].median / $a[0].median * 100 | round | "\(. / 100 | floor).\(. % 100 | if . < 10 then "0\(.)" else . end)"'
}

row() { # LABEL NAME THROUGHPUT GATES WAITS
    printf '%-22s %10.1f %10.1f %9s %14s %7s %7s\n' "$1" "$(figure "$2" 'median / 1000')" \
        "$(figure "$2" 'p99 / 1000')" "$(slowdown "$2")x" "$3" "$4" "$5"
}

# A simulated block takes 1 ms whatever it does, and with Weir one block does the work of several.
low_rate_with_weir() {
    if [ "$gpu" = "simulated GPU" ]; then echo -; else low_rate weir; fi
}

low_rate() { # NAME
    jq -r '.kernels_per_second | round' "$tmp/$1-low.json"
}

low_counter() { # FIELD
    jq -r "[.clients[] | select(.level == \"low\" or .level == 0) | .$1] | add // 0" "$tmp/status.json"
}

[ "$(id -u)" = 0 ] || fail "run it as root: it starts the low-priority client as another user"
choose_gpu
cp "$B/bin/burst" "$B/bin/filler" "$B/lib/libweir.so" "$tmp/" # where another user may read them
mkdir -m 777 "$tmp/low"
echo "demo: $gpu; HIGH sends bursts of kernels at random times, LOW keeps the GPU full"

preload=
run_high alone
shared plain
start_agent
preload=$tmp/libweir.so
shared weir

printf '\n%-22s %10s %10s %9s %14s %7s %7s\n' "HIGH's requests" 'median ms' 'p99 ms' slowdown \
    "LOW kernels/s" gates waits
row 'alone' alone - - -
row 'beside LOW' plain "$(low_rate plain)" - -
row 'beside LOW, with Weir' weir "$(low_rate_with_weir)" "$(low_counter gates)" "$(low_counter waits)"
printf "\nWithout Weir each kernel of HIGH waits for one of LOW's.\nWith Weir LOW's streams stood still %s times, as long as HIGH had work.\n\n" \
    "$(low_counter waits)"
echo "demo: high-priority slowdown alone=1.00 shared=$(slowdown plain) weir=$(slowdown weir)"
