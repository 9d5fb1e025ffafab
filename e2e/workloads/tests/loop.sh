#!/bin/bash
# Programs around event loops on the simulated GPU, with real files and sockets: each way of each has the right result,
# and a wrong one is noticed.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
# shellcheck source=e2e/simcuda/tests/scratch.sh
. e2e/simcuda/tests/scratch.sh
mkdir "$tmp/files"

run() { # PROGRAM OPTION...
    local program=$1
    shift
    timeout 120 "$B/bench/loop-$program" "$@" >"$tmp/out" 2>&1
}

for way in post look split; do
    check "throttle, $way: all points are passed" run throttle --way $way --blocks 2 --threads 32 --iterations 500
done
check "throttle: without libweir it leaves for nobody" \
    run throttle --way look --blocks 2 --threads 32 --seconds 0.2 --leaves
# What a point takes must not depend on whether the kernel has left yet: a loop's part of the GPU is told by its points.
has_one_copy() { # of what passes points with a look
    [ "$(grep -c 'bar\.red' "$B/gen/e2e/workloads/loop/throttle.ptx")" -eq 1 ]
}
check "throttle: all points are passed by the same code" has_one_copy
for kernel in lava-md angular-correlation hybrid-sort suffix-match; do
    for way in native split loop; do
        check "$kernel, $way: the result is right" run ports --only $kernel --way $way --class trivial --seed 3
    done
    check "$kernel, loop: the result is right with several parts a block" run ports --only $kernel --way loop --class small
done
for way in native split loop; do
    for kernel in lava-md angular-correlation; do
        check "$kernel, $way: several passes in a round" run ports --only $kernel --way $way --class trivial --repeat 5
    done
done
check "angular-correlation: it leaves in the middle of several passes, and the result is right" \
    run ports --only angular-correlation --way loop --leaving --class trivial --repeat 5
check "ports: the loop waits as the library has it" run ports --only lava-md --way loop --class trivial --spin 0
leaves_and_is_right() { # PROGRAM OPTION...
    run "$@" --leaving && tail -n 1 "$tmp/out" | jq -e '.way == "loop" and .leaving_us > 0' >/dev/null
}
for kernel in lava-md angular-correlation hybrid-sort suffix-match; do
    check "$kernel: it leaves in the middle, and the result is right" leaves_and_is_right ports --only $kernel --class small
done
for program in grep images tokens; do
    check "$program: it leaves in the middle, and the result is right" leaves_and_is_right $program --folder "$tmp/files"
done
for way in cpu native split loop; do
    check "grep, $way: finds all words" run grep --way $way --folder "$tmp/files" --seed 5
    check "images, $way: finds the most similar" run images --way $way --folder "$tmp/files" --seed 5
done
check "grep, parallel: finds all words" run grep --way parallel --folder "$tmp/files" --seed 5
check "images, parallel: finds the most similar" run images --way parallel --folder "$tmp/files" --seed 5
for blocks in 1 2; do
    check "images, loop: several ranges of queries and reads by $blocks blocks" \
        run images --way loop --blocks $blocks --folder "$tmp/files" --size 515 --queries 261 --seed 6
done
check "grep, loop: several passes, one thread that reads, waits as the library has them" \
    run grep --way loop --folder "$tmp/files" --seed 5 --repeat 3 --readers 1 --spin 0
check "grep, loop: it leaves in the middle of several passes" leaves_and_is_right grep --folder "$tmp/files" --repeat 3
# When it is ready, the CPU has searched; the program waits for the go file.
change_before_go() { # COMMAND...
    rm -f "$tmp/ready" "$tmp/go"
    timeout 120 "$B/bench/loop-grep" --way loop --folder "$tmp/changed" --size 3 --seed 5 --repeat 3 \
        --ready-file "$tmp/ready" --go-file "$tmp/go" >"$tmp/out" 2>&1 &
    local grep=$!
    eventually 60 test -e "$tmp/ready" && "$@" && touch "$tmp/go"
    wait $grep
}
mkdir "$tmp/changed"
check "grep, loop: it begins when it is told to" change_before_go true
move_word() { # one byte on: the number of matches is as before
    sed -i '0,/needle\([^n]\)/s//\1needle/' "$tmp/changed/text-1"
}
change_before_go move_word
[ $? -eq 1 ] && grep -q 'match [0-9]* is at' "$tmp/out"
report $? "grep, loop: a word at another place in the last pass is noticed"
remove_word() {
    sed -i '0,/needle/s//noodle/' "$tmp/changed/text-1"
}
change_before_go remove_word
[ $? -eq 1 ] && grep -q 'in the passes before the last one, not' "$tmp/out"
report $? "grep, loop: a word that is missing in the other passes is noticed"
run grep --way loop --folder "$tmp/files" --seed 5 --result /dev/full
[ $? -eq 1 ] && grep -q "ended with -28: No space left on device" "$tmp/out"
report $? "grep, loop: a full disk is an error"
for way in parallel loop; do
    check "grep, $way: words across the borders of chunks" \
        run grep --way $way --folder "$tmp/files" --size 2 --bytes 3000000 --word tion --seed 6
done
check "grep, parallel: more files than the processors take at once" \
    run grep --way parallel --folder "$tmp/files" --size 150 --bytes 3000 --seed 8
for way in cpu native parallel loop; do
    check "tokens, $way: numbers and tensor are right" run tokens --way $way --folder "$tmp/files" --seed 7
done
check "tokens, loop: several reads, and rows longer than what is read ahead" \
    run tokens --way loop --leaving --size 700 --dimension 300 --folder "$tmp/files" --seed 7
check "tokens: memory of a Python program is filled" \
    timeout 60 python3 e2e/workloads/tests/token-library.py "$B/lib/libloop-tokens.so" "$tmp/files"
for size in 4096 65536 1048576; do
    check "file-read, loop, requests of $size: every byte arrives" \
        run file-read --way loop --folder "$tmp/files" --size $size --bytes 2097152
done
for way in read host link; do
    check "file-read, $way" run file-read --way $way --folder "$tmp/files"
done
# By O_DIRECT, where the files lie on a disk: nothing of the file comes into the page cache.
has_disk() {
    [ "$(stat -f -c %T "$tmp/files")" != tmpfs ] && dd if=/dev/zero of="$tmp/zeros" bs=4096 count=1 oflag=direct 2>"$tmp/out"
}
goes_around() { # WAY SIZE
    run file-read --direct --way "$1" --folder "$tmp/files" --size "$2" --bytes 2097152 --depth 32 &&
        tail -n 1 "$tmp/out" | jq -e '.cached == 0'
}
if has_disk; then
    for size in 4096 65536 1048576; do
        check "file-read, loop, requests of $size from the disk: they go around the page cache" goes_around loop $size
    done
    check "file-read, host, from the disk" goes_around host 65536
fi
check "file-read: ways take turns" run file-read --way loop,host,link --rounds 2 --folder "$tmp/files"
check "file-read: each way has a rate of each round" \
    python3 -c '
import json, sys
rates = json.loads(open(sys.argv[1]).read().splitlines()[-1])["rates"]
assert list(rates) == ["loop", "host", "link"] and all(len(each) == 2 and min(each) > 0 for each in rates.values())' "$tmp/out"
check "no files are left" test -z "$(find "$tmp/files" -type f ! -name 'text-*')"

# Servers on loopback.
serve() { # OPTION...
    port=$(python3 e2e/bench/lib/free_port.py)
    rm -f "$tmp/ready" "$tmp/stop"
    timeout 120 "$B/bench/loop-server" --port "$port" --ready-file "$tmp/ready" --stop-file "$tmp/stop" "$@" \
        >"$tmp/server" 2>&1 &
    server=$!
    eventually 60 test -e "$tmp/ready"
}

ends_well() { # ANSWERED
    touch "$tmp/stop"
    wait "$server" && [ "$(jq .answered "$tmp/server")" -eq "$1" ]
}

for service in echo matmul kv; do
    for way in cpu driven loop; do
        serve --service $service --way $way
        check "$service, $way: the server listens" test -e "$tmp/ready"
        check "$service, $way: every reply is right" run client --service $service --port "$port" --connections 6 --iterations 150
        check "$service, $way: the server counts them, and stops" ends_well 150
    done
done

serve --service matmul --way loop --size 80
check "matmul, loop: requests that come in pieces, and tiles across the edge" run client --service matmul --size 80 --port "$port" --connections 2 --iterations 4
check "matmul, loop: it stops" ends_well 4
serve --service kv --way loop
check "kv, loop: more connections than callbacks" run client --service kv --port "$port" --connections 64 --iterations 640
check "kv, loop: requests at fixed times" run client --service kv --port "$port" --connections 4 --rate 200 --seconds 0.5
at_random() { # SEED FILE
    run client --service kv --port "$port" --connections 4 --rate 200 --iterations 60 --random --list --seed "$1" &&
        jq '[.list[][0]] | sort' "$tmp/out" >"$tmp/$2" && [ "$(jq length "$tmp/$2")" -eq 60 ]
}
check "kv, loop: requests at random times" at_random 1 dues-1
check "kv, loop: at the same random times again" eval 'at_random 1 dues-2 && cmp -s "$tmp/dues-1" "$tmp/dues-2"'
check "kv, loop: at others with another seed" eval 'at_random 2 dues-3 && ! cmp -s "$tmp/dues-1" "$tmp/dues-3"'
(timeout -s KILL 1 "$B/bench/loop-client" --service kv --port "$port" --connections 8 --seconds 20; true) >/dev/null 2>&1
check "kv, loop: a client beside it" run client --service kv --port "$port" --connections 2 --first 64 --iterations 50
check "kv, loop: goes on after a client is killed" run client --service kv --port "$port" --connections 4 --iterations 100
touch "$tmp/stop"
wait "$server"
report $? "kv, loop: stops"

# Clients that do not behave. Whoever sends a byte and stops keeps no callback, of which there are fewer.
stop_in_requests() { # CLIENTS
    timeout 60 "$B/bench/loop-rude" --service echo --way stop --port "$port" --connections "$1" --first 1000 \
        --ready-file "$tmp/stopped" --stop-file "$tmp/go-on" >"$tmp/rude" 2>&1 &
    rude=$!
    eventually 20 test -e "$tmp/stopped"
}
go_on() { # CLIENTS
    touch "$tmp/go-on"
    wait "$rude" && [ "$(jq .done "$tmp/rude")" -eq "$1" ]
}
for engine in uring pool; do
    [ $engine = uring ] || export WEIR_LOOP_NO_URING=1
    serve --service echo --way loop --blocks 2
    rm -f "$tmp/stopped" "$tmp/go-on"
    check "echo, $engine: clients send a byte and stop" stop_in_requests 100
    check "echo, $engine: others are answered" run client --service echo --port "$port" --connections 4 --iterations 100
    check "echo, $engine: so are these, when they go on" go_on 100
    check "echo, $engine: connections end by resets" run rude --service echo --way reset --port "$port" --connections 8 --iterations 300
    check "echo, $engine: others are answered then" run client --service echo --port "$port" --connections 4 --iterations 100
    touch "$tmp/stop"
    wait "$server"
    report $? "echo, $engine: stops"
    serve --service echo --way loop --size 65536
    check "echo, $engine: narrow connections that are read byte by byte" \
        run rude --service echo --size 65536 --way crawl --port "$port" --connections 3
    check "echo, $engine: stops" ends_well 3
done
unset WEIR_LOOP_NO_URING

# A server that answers something else is noticed.
serve --service echo --way cpu
run client --service kv --port "$port" --iterations 10
[ $? -eq 1 ] && grep -q "wrong reply" "$tmp/out"
report $? "a wrong reply is noticed"
touch "$tmp/stop"
wait "$server"
for program in grep images; do
    FAULT_LAUNCH=1 LD_PRELOAD=$B/lib/fault.so run $program --way native --seed 5 --folder "$tmp/files"
    [ $? -eq 1 ]
    report $? "$program: a lost launch is noticed"
done
# The first round only loads.
for words in "tokens --folder $tmp/files" ports; do
    # shellcheck disable=SC2086 # words
    FAULT_LAUNCH=2 LD_PRELOAD=$B/lib/fault.so run $words --way native --seed 5 --iterations 1
    [ $? -eq 1 ]
    report $? "${words%% *}: a lost launch is noticed"
done
# A round has two launches for each of three passes.
FAULT_LAUNCH=9 LD_PRELOAD=$B/lib/fault.so run ports --only angular-correlation --way native --class trivial --repeat 3 --iterations 1
[ $? -eq 1 ] && grep -q 'wrong result' "$tmp/out"
report $? "angular-correlation: a launch that is lost in one of several passes is noticed"
for words in "ports --only lava-md --way split --leaving" "grep --way split --leaving --folder $tmp/files" \
    "images --way native --leaving --folder $tmp/files" "tokens --way parallel --leaving --folder $tmp/files" \
    "grep --way fast --folder $tmp/files" "images --way loop" "ports --only no-such" "ports --repeat 5 --only hybrid-sort" \
    "ports --spin 1000001" "grep --folder $tmp/files --spin 1000001" "grep --folder $tmp/files --way split --repeat 2" \
    "server --service kv" "client --service mail --port 1" "rude --service kv --port 1" \
    "client --service kv --port 1 --random" "file-read --folder $tmp/files --size 3" "file-read --folder $tmp/files --way loop," "throttle --blocks 0"; do
    # shellcheck disable=SC2086
    run $words
    [ $? -eq 2 ]
    report $? "refused: $words"
done
exit "$failed"
