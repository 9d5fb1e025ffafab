#!/bin/bash
# The example of loops, as its comments say, and all kernels of runtime-lib/loop/README.md, which are one file, do on the
# simulated GPU what the page promises.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
cuda=${CUDA_HOME:-build/cuda}
export LD_LIBRARY_PATH=$PWD/$B/simcuda WEIR_SIM_SMS=2 WEIR_SIM_DIR=$work/sim
mkdir "$work/sim"

program() {
    "$cuda/bin/nvcc" -std=c++17 -arch=compute_75 -ptx -Iruntime-lib/include -o "$work/loop.ptx" runtime-lib/examples/loop.cu &&
        gcc -Wall -Werror -I runtime-lib/include -isystem "$cuda/include" -o "$work/loop" runtime-lib/examples/loop.c \
            "$B/lib/libweir-loop.a" "$B/simcuda/libcuda.so.1" -luring -ldl -lpthread
}
guide() {
    awk '/^```cuda/ {inside = 1; next} /^```/ {inside = 0} inside' runtime-lib/loop/README.md >"$work/guide.cu"
    "$cuda/bin/nvcc" -std=c++17 -arch=compute_75 -ptx -Werror all-warnings -Iruntime-lib/include -o "$work/guide.ptx" "$work/guide.cu"
}
prints() { # NUMBER PTX KERNEL TEXT
    local printed
    printed=$(timeout 60 "$work/loop" "$work/$2.ptx" "$3" "$4" 2>"$work/said") && [ "$printed" = "$1" ]
}
says_what_is_wrong() { # PTX KERNEL FILE
    ! timeout 60 "$work/loop" "$work/$1.ptx" "$2" "$3" 2>"$work/said" && grep -q "No such file or directory" "$work/said"
}
answers() { # TEXT: a line of one connection
    local line
    exec 5<>/dev/tcp/127.0.0.1/"$port" && printf '%s\n' "$1" >&5 && read -r -t 10 line <&5
    exec 5>&-
    [ "$line" = "$1" ]
}
listens() { : </dev/tcp/127.0.0.1/"$port"; } 2>/dev/null
ends() {
    exec 5<>/dev/tcp/127.0.0.1/"$port" && printf 'quit' >&5
    wait "$server"
    local status=$?
    server=
    [ $status = 0 ] && [ "$(cat "$work/answered")" = 2 ]
}
three_ticks() { prints 3 guide ticks ping && [ "$(grep -c "the GPU says: ping" "$work/said")" = 3 ]; }

check "the example compiles" program
seq 100000 >"$work/numbers"
check "counts lines" prints 100000 loop count_lines "$work/numbers"
check "and of nothing" prints 0 loop count_lines /dev/null
check "and says what is wrong" says_what_is_wrong loop count_lines "$work/nowhere"

check "the page's kernels compile" guide
check "tasks" prints 499500 guide sum_by_tasks ""
check "blocks" prints 499500 guide sum_by_blocks ""
check "a file is copied" prints "$(stat -c %s "$work/numbers")" guide copy_file "$work/numbers"
check "and is the same" cmp "$work/numbers" "$work/numbers.copy"
check "or it says what is wrong" says_what_is_wrong guide copy_file "$work/nowhere"
check "a timer and a function of the host" three_ticks
check "a long computation" prints 512 guide random_steps ""

port=$(python3 e2e/bench/lib/free_port.py)
timeout 120 "$work/loop" "$work/guide.ptx" echo "127.0.0.1:$port" >"$work/answered" &
server=$!
check "a server listens" eventually 30 listens
check "answers" answers hello
check "answers another connection" answers again
check "and ends" ends
exit $failed
