#!/bin/bash
# Whole CUDA programs on the simulated GPU: each has the same right result without libweir, with it, and below a busy
# client; and nothing of it stays when it is killed in the middle. They notice a launch that is lost.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
. e2e/standalone/machine.sh
prepare burst
cp "$B"/simprograms/* "$work/bin/"
chmod -R a+rX "$work/bin"

mapfile -t programs < <(cd "$B/simprograms" && ls)
checksum() { # LOG
    sed -n 's/^[a-z-]*: right, [0-9]* rounds, \([0-9a-f]\{16\}\)$/\1/p' "$1"
}
has_same_result() { # PROGRAM LOG
    [ -n "$(checksum "$2")" ] && [ "$(checksum "$2")" = "$(checksum "$work/$1-alone.log")" ]
}

check "there are programs" [ ${#programs[@]} -ge 12 ]
for program in "${programs[@]}"; do
    LD_LIBRARY_PATH=$work timeout 60 "$work/bin/$program" >"$work/$program-alone.log" 2>&1
    check "$program: right without Weir" has_same_result "$program" "$work/$program-alone.log"
done

# The library loses no cooperative launches.
for program in "${programs[@]}"; do
    [ "$program" != cooperative ] || continue
    FAULT_LAUNCH=1 LD_PRELOAD=$B/lib/fault.so LD_LIBRARY_PATH=$work timeout 60 "$work/bin/$program" >"$work/lost.log" 2>&1
    [ $? -eq 1 ] && grep -q 'wrong result' "$work/lost.log"
    report $? "$program notices a lost launch"
done

# What the transformer says of the PTX in a program that nvcc built; nothing where it has machine code only.
forms_of() { # PROGRAM
    objcopy -O binary --only-section=.nv_fatbin "$B/programs/$1" "$work/fatbin" && "$B/bin/weir-transform" --list "$work/fatbin"
}
are_refused() { # REASON
    [ -s "$work/forms" ] && ! grep -v "	no	.*$1" "$work/forms"
}
all_have_forms() {
    [ -s "$work/forms" ] && ! grep '	no	' "$work/forms"
}
for program in "$B"/programs/*; do
    program=${program##*/}
    forms_of "$program" >"$work/forms" 2>"$work/forms.log"
    case $program in
    clusters) check "$program: refused, and said" are_refused 'launched in clusters' ;;
    cooperative) check "$program: refused, and said" are_refused 'cooperative grids' ;;
    conditional-graph) check "$program: what ends the loop is refused, and said" grep -q '^_Z6decide.*	no	.*cudaGraphSetConditional' "$work/forms" ;;
    dynamic-parallelism | runtime-module) check "$program: has no PTX of its own" [ ! -s "$work/forms" ] ;;
    *) check "$program: its kernels have all forms" all_have_forms ;;
    esac
done

check "the agent is up" start_agent
for program in "${programs[@]}"; do
    governed 65534 "$program" >"$work/$program.log" 2>&1
    check "$program: right with Weir" has_same_result "$program" "$work/$program.log"
done

start_busy
for program in "${programs[@]}"; do
    governed 65534 "$program" --seconds 0.3 >"$work/$program.log" 2>&1
    check "$program: right below a busy client" has_same_result "$program" "$work/$program.log"
done

known() { # PID
    status ".clients[] | select(.pid == $1)"
}
# Bits that clients of level 1 have set against those below.
demands() {
    od -An -v -t u8 -N8 "$work"/state/*/demand-0
}
is_gone() { # PID BIT
    [ -z "$(known "$1")" ] && [ $(($(demands) >> $2 & 1)) = 0 ]
}
has_accounts() { # NUMBER
    local accounts=("$work"/state/memory/account-*)
    [ ${#accounts[@]} = "$1" ]
}

# A level up: there it has a demand bit of its own.
check "only the busy client has memory" eventually 10 has_accounts 1
for program in "${programs[@]}"; do
    ready=$work/sim/$program-ready
    governed 65533 "$program" --seconds 600 --ready-file "$ready" >"$work/$program.log" 2>&1 &
    victim=$!
    clients[$victim]=$program
    # per-thread-stream has its context afterwards.
    is_at_work() { [ -e "$ready" ] && [ "$(known "$(program_of $victim)" | jq .client | wc -l)" = 1 ]; }
    check "$program is at work, as one client" eventually 30 is_at_work
    check "$program has an account of memory" eventually 10 has_accounts 2
    pid=$(program_of $victim)
    bit=$(known "$pid" | jq .bit)
    sleep "0.0$((RANDOM % 10))"
    kill -KILL "$pid"
    wait $victim 2>/dev/null
    unset "clients[$victim]"
    check "$program is killed: no client and no demand bit stays" eventually 10 is_gone "$pid" "$bit"
    check "$program is killed: its memory is charged to nobody" eventually 10 has_accounts 1
done
stop_busy
check "the GPU is free for the lowest level" governed 65534 many-launches
[ $failed -eq 0 ] || { tail -n 3 "$work"/*.log; exit 1; }
