#!/bin/bash
# Applications under libweir, held back again and again by a busy client above them: every value that they
# compute is still right, and they were held indeed. And a program that libweir meets without an agent,
# without a driver, or without any use of CUDA, runs as if it were not there.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
work=$(mktemp -d)
chmod 755 "$work"
pids=()
failed=0

finish() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    rm -rf "$work"
}
trap finish EXIT

say() { # STATUS TEXT
    if [ "$1" -eq 0 ]; then echo "ok - $2"; else echo "not ok - $2"; failed=1; fi
}

mkdir "$work/state" && mkdir -m 777 "$work/sim"
cat >"$work/agent.yaml" <<END
socket: $work/agent.sock
stateDir: $work/state
control: {socket: $work/control.sock}
metrics: {address: ""}
standalone:
  rules:
    - {uid: 65534, level: low}
    - {uid: 0, level: high}
END
export WEIR_SIM_DIR=$work/sim WEIR_SIM_SMS=2
cp -L "$B/simcuda/libcuda.so.1" "$B/lib/libweir.so" "$work/"
mkdir "$work/bin"
cp "$B"/bin/{vector-add,matrix-multiply,reduction,long-block,stream-order,burst} "$work/bin/"
chmod -R a+rX "$work/bin" "$work"/*.so*

plain() { # PROGRAM...
    env LD_LIBRARY_PATH="$work" "$@"
}
governed() { # UID PROGRAM...
    setpriv --reuid="$1" --regid="$1" --clear-groups env LD_PRELOAD="$work/libweir.so" \
        WEIR_DRIVER="$work/libcuda.so.1" WEIR_SOCKET="$work/agent.sock" LD_LIBRARY_PATH="$work" "${@:2}"
}

# Before there is an agent.
governed 65534 "$work/bin/vector-add" >"$work/log" 2>&1
say $? "no agent: the application runs"
[ ! -s "$work/log" ] || ! grep -q libweir "$work/log"
say $? "no agent: nothing is said about it"
LD_PRELOAD=$work/libweir.so /bin/true
say $? "no use of CUDA: a program runs"
LD_PRELOAD=$work/libweir.so WEIR_DRIVER=/nowhere "$work/bin/vector-add" >"$work/log" 2>&1
[ $? -ne 0 ] && grep -q '(100)' "$work/log"
say $? "no driver: the application is told that there is no device"

"$B/bin/weir-agent" --config "$work/agent.yaml" --standalone >"$work/agent.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do [ ! -S "$work/agent.sock" ] || break; sleep 0.1; done
governed 0 "$work/bin/burst" --kernels 20 --iterations 2000 --gap-min-us 500 --gap-max-us 3000 \
    --requests 100000000 --stop-file "$work/stop" >"$work/burst.log" 2>&1 &
pids+=($!)
sleep 0.5

for program in vector-add matrix-multiply reduction long-block; do
    governed 65534 timeout 120 "$work/bin/$program" --seconds 2 >"$work/$program.log" 2>&1
    say $? "$program below a busy client: every value is right"
done
for seed in 1 2 3; do
    governed 65534 timeout 200 "$work/bin/stream-order" --seed $seed >"$work/stream-order.log" 2>&1
    say $? "stream-order below a busy client, seed $seed: order is kept"
done
governed 0 timeout 200 "$work/bin/stream-order" --seed 4 >>"$work/stream-order.log" 2>&1
say $? "stream-order beside an equal: order is kept"
plain timeout 200 "$work/bin/stream-order" --seed 5 >>"$work/stream-order.log" 2>&1
say $? "stream-order without libweir: the driver keeps the order"

touch "$work/stop"
wait "${pids[1]}"
say $? "the busy client's own values are right"
unset 'pids[1]'
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
