#!/bin/bash
# The programs of e2e/workloads/loop below a busy client: they leave for it in the middle of their work, and every result
# is right. Servers answer, and are off the GPU while nobody asks.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=true
prepare burst
cp "$B"/bench/loop-* "$work/bin/"
chmod a+rx "$work"/bin/*
mkdir -m 777 "$work/files"
export WEIR_SIM_SMS=2 LD_LIBRARY_PATH=$PWD/$B/simcuda

run() { # PROGRAM OPTION...
    local program=$1
    shift
    governed 65534 "loop-$program" "$@" >"$work/out.json" 2>"$work/out.log"
}
of_server() { # FILTER
    [ "$(status "first(.clients[] | select(.command == \"loop-server\")) | $1" 2>/dev/null)" = true ]
}

check "the agent is up" start_agent
start_busy
for kernel in lava-md angular-correlation hybrid-sort suffix-match; do
    check "$kernel: the result is right" run ports --only $kernel --way loop --class small
done
for program in grep images tokens file-read; do
    check "$program: the result is right" run $program --way loop --folder "$work/files"
done
check "a long loop" run ports --only lava-md --way loop --class small --repeat 20 --iterations 1
for service in echo matmul kv; do
    port=$(python3 e2e/bench/lib/free_port.py)
    rm -f "$work/files"/{ready,stop}
    run server --service $service --way loop --port "$port" --ready-file "$work/files/ready" --stop-file "$work/files/stop" &
    server=$!
    clients[$server]=server
    check "$service: the server listens" eventually 60 test -e "$work/files/ready"
    check "$service: every reply is right" \
        timeout 60 "$B/bench/loop-client" --service $service --port "$port" --connections 8 --iterations 200
    check "$service: it has left for the client above" of_server '.evictions > 0'
    check "$service: it is off the GPU when nobody asks" eventually 30 of_server '.loopsOnGpu == 0 and .loopsWaitFor.network > 0'
    touch "$work/files/stop"
    wait "$server"
    report $? "$service: it stops"
    unset "clients[$server]"
done
stop_busy
[ $failed -eq 0 ] || { tail -n 20 "$work"/*.log; exit 1; }
