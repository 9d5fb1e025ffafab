#!/bin/bash
# Under MPS a client with few blocks, for which `yield: needed` holds, asks lower levels for these SMs alone. What the
# agent shows of both sides, and that nothing is left behind when clients or the agent die.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare filler burst
export WEIR_SIM_SMS=8 WEIR_SIM_BLOCK_US=500
# Before the rules of machine.sh: the first that fits decides.
sed -i 's|  rules:|  rules:\n    - {uid: 65529, level: high, yield: needed+0%}\n    - {uid: 65531, level: high, yield: needed}\n    - {uid: 65530, level: high, yield: needed+50%}|' "$work/agent.yaml"

. e2e/standalone/fillers.sh
# libweir compares SMs of its own with the whole GPU (runtime-lib/gates/need-choice.h), and says in its log what it found.
# These SMs are processors here, so on a busy machine the whole GPU may be faster: then it asks for that.
export WEIR_LOG=debug
whole_is_faster() { # UID
    grep -o 'with SMs of its own (half) [0-9]*, with all [0-9]*' "$work/filler-$1.log" | tail -n 1 | tr -d , |
        awk 'END {exit !($7 > 1.1 * $10)}'
}
asks_for() { # UID NEEDED LEFT-TO-LOW
    ! whole_is_faster "$1" || set -- "$1" 8 0
    shows "$1" smsNeeded "$2" && shows 65534 smsLeft "$3"
}
shown() { # WORDS UID NEEDED LEFT-TO-LOW
    check "$1: it needs $3 SMs, and $4 are left to the client below" eventually 30 asks_for "$2" "$3" "$4"
}

check "the agent is up" start_agent
begin 65534 64
low=$pid
check "nobody is above it: it has all SMs" eventually 30 shows 65534 smsLeft 8

begin 65531 2
high=$pid
shown "two blocks" 65531 2 6
check "the client below knows that it may leave a part" eventually 30 shows 65534 leavesPart true
check "weirctl top shows both" eval "'$B/bin/weirctl' --socket '$work/control.sock' top --times 1 | grep 'SMS LEFT'"
kill -KILL "$(program_of "$high")"
wait "$high" 2>/dev/null
unset "clients[$high]"
check "it was killed: all SMs are left again" eventually 30 shows 65534 smsLeft 8

begin 65530 2
high=$pid
shown "two blocks and half as many more" 65530 3 5
end 65530 "$high"
check "it has ended: all SMs are left again" eventually 30 shows 65534 smsLeft 8

begin 65531 7
high=$pid
shown "more than 3/4 of the SMs" 65531 8 0
end 65531 "$high"

# Without a word the whole GPU is meant.
begin 0 2
high=$pid
shown "no yield" 0 8 0
check "it leaves the whole GPU" shows 65534 leavesPart false
begin 65531 2
second=$pid
shown "beside one that yields" 65531 2 0
end 0 "$high"
shown "alone again" 65531 2 6

kill -KILL "$agent"
wait "$agent" 2>/dev/null
check "the agent is up again" start_agent
shown "after a restart of the agent" 65531 2 6
sed -i 's|yield: needed}|yield: whole}|' "$work/agent.yaml"
kill -HUP "$agent"
check "another yield in the configuration" eventually 30 shows 65531 yield '"whole"'
shown "from then on" 65531 8 0
end 65531 "$second"
check "all SMs are left again" eventually 30 shows 65534 smsLeft 8
end 65534 "$low"

# A kernel that can leave a part of the SMs works on while a higher level has work all the time. It has begun when the
# higher level paused, and knew that it may.
sed -i 's|yield: whole}|yield: needed}|' "$work/agent.yaml"
kill -HUP "$agent"
mkdir -m 777 "$work/65529"
WEIR_YIELD_SMS=2 governed 65529 burst --kernels 1 --size 2 --gap-min-us 300000 --gap-max-us 300000 --requests 100000 \
    --stop-file "$work/65529/stop" --ready-file "$work/65529/ready" >"$work/burst.log" 2>&1 &
clients[$!]=burst
pauses=$!
check "a client above has work now and then" eventually 60 test -e "$work/65529/ready"
WEIR_FORM=persistent WEIR_CHUNK=1 WEIR_PREEMPT_LATENCY_US=1000000 begin 65534 64
low=$pid
done_by() { status "[.clients[] | select(.uid == $1) | .launches] | add // 0"; }
has_done() { [ "$(done_by "$1")" -ge "$2" ]; } # UID LAUNCHES
check "its kernels run" eventually 60 has_done 65534 100
check "and may leave a part of the SMs" shows 65534 leavesPart true
WEIR_YIELD_SMS=2 begin 65531 2
high=$pid
before=$(done_by 65534)
check "one client above works without a pause" eventually 60 has_done 65531 20
check "the one below works on" eventually 60 has_done 65534 $((before + 20))
end 65531 "$high"
end 65534 "$low"
end 65529 "$pauses"

# A graph of kernels of two blocks behind each other needs as many, and its replay is one launch in place of all of them.
mkdir -m 777 "$work/graphs"
WEIR_YIELD_SMS=3 governed 65531 burst --kernels 4 --size 2 --replays --gap-min-us 0 --gap-max-us 0 --requests 100000000 \
    --stop-file "$work/graphs/stop" --ready-file "$work/graphs/ready" --log "$work/graphs/log" >"$work/graphs.log" 2>&1 &
clients[$!]=graphs
high=$!
check "a graph of few blocks needs few SMs" eventually 60 shows 65531 smsNeeded 3
is_one_launch() { # The client reports launches later than it logs requests.
    local n
    n=$(done_by 65531)
    [ "$n" -ge 100 ] && [ "$n" -le $((2 * $(wc -l <"$work/graphs/log") + 8)) ]
}
check "a replay is one launch" eventually 60 is_one_launch
touch "$work/graphs/stop"
wait "$high"
check "its kernels ran as often as they should" test $? -eq 0
unset "clients[$high]"
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
