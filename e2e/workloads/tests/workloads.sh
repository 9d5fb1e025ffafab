#!/bin/bash
# Every workload on the simulated GPU: right results pass, and a lost launch does not.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
. e2e/simcuda/tests/scratch.sh

ends_with() { # EXIT-STATUS COMMAND...
    local expected=$1
    shift
    timeout 120 "$@" >"$tmp/out" 2>&1
    [ $? -eq "$expected" ]
}

# A driver that loses launch LAUNCH; the program has to notice it, with one of these messages.
notices() { # LAUNCH MESSAGE PROGRAM [OPTION...]
    local launch=$1 message=$2 program=$3
    shift 3
    ends_with 1 env FAULT_LAUNCH="$launch" LD_PRELOAD="$B/lib/fault.so" "$B/bin/$program" "$@" && grep -q "$message" "$tmp/out"
}

for program in vector-add matrix-multiply reduction long-block; do
    check "$program" ends_with 0 "$B/bin/$program"
    check "$program with another seed and size" ends_with 0 "$B/bin/$program" --seed 7 --size 33
    check "$program notices a lost launch" notices 2 'wrong result' "$program"
done
for seed in 1 2 3; do
    check "stream-order, seed $seed" ends_with 0 "$B/bin/stream-order" --seed $seed
done
for launch in 5 20 60; do
    check "stream-order notices that launch $launch is lost" notices $launch 'word\|host function' stream-order --threads 1
done
check "burst" ends_with 0 "$B/bin/burst" --requests 5 --gap-min-us 0 --gap-max-us 1000
check "burst notices a lost launch" notices 2 'wrong result' burst --requests 2
check "burst --timed notices a lost launch" notices 2 'wrong result' burst --requests 2 --timed
# Of the four requests so many meet the condition, and the parts of each add up to its time. They are in columns 3 to 6.
timed() { # REQUESTS CONDITION OPTION...
    local requests=$1 condition=$2
    shift 2
    rm -f "$tmp/requests"
    ends_with 0 "$B/bin/burst" --requests 4 --kernels 3 --gap-min-us 0 --gap-max-us 1000 --timed \
        --log "$tmp/requests" "$@" &&
        cp "$tmp/requests" "$tmp/out" &&
        awk "NF != 10 || \$9 > \$6 || (\$2 - \$3 - \$4 - \$5 - \$6) ^ 2 > 0.25 || \$3 <= 0 { bad = 1 } $condition { n++ }
            END { exit bad || NR != 4 || n != $requests }" "$tmp/requests"
}
timed_late() { # LAUNCH CONDITION
    FAULT_LATE=$1 LD_PRELOAD=$B/lib/fault.so timed 1 "$2"
}
# Kernels take a part of the request, and no more.
says_gpu_time() {
    ends_with 0 "$B/bin/burst" --requests 4 --gap-min-us 0 --gap-max-us 1000 --iterations 20000 --timed &&
        python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
each = len(found["each"]) == 4 and all(0 < kernel < us for us, kernel in found["each"])
sys.exit(not (each and 0 < found["gpu_median"] < found["median"]))
' "$tmp/out"
}
check "burst --timed: how long the kernels took" says_gpu_time
# Three launches are of a request that is not in the log.
check "burst --timed: a request held up by its thread before a launch" timed_late 7 '$4 > 300000 && $8 > 300000'
check "burst --timed: one held up between launches" timed_late 8 '$5 > 300000 && $8 > 300000'
check "burst --timed: requests that the GPU takes long for" timed 4 '$3 > 5000' --iterations 200000
check "burst --timed --spans: the GPU's time from the first launch on" timed 4 '$10 > 0 && $10 < $2' --spans
check "burst --timed: no such time without --spans" timed 4 '$10 == 0'
check "filler" ends_with 0 "$B/bin/filler" --seconds 0.2
check "filler notices a lost launch" notices 2 'wrong result' filler --seconds 0.2
check "cooperative kernels of two priorities" ends_with 0 "$B/bin/cooperative-pair"
check "cas" ends_with 0 "$B/bin/cas"
check "cas with other code" ends_with 0 "$B/bin/cas" --salt 7 --size 33
check "cas notices a lost launch" notices 1 'wrong result' cas
check "tensor" ends_with 0 "$B/bin/tensor" --class trivial
for name in $("$B/bin/tensor" --list | cut -d ' ' -f 1); do
    check "tensor: $name notices a lost launch" notices 1 'wrong result' tensor --class trivial --only "$name"
done
check "masks" ends_with 0 "$B/bin/masks" --class trivial
for name in $("$B/bin/masks" --list | cut -d ' ' -f 1); do
    check "masks: $name notices a lost launch" notices 1 'wrong result' masks --class trivial --only "$name"
done
check "bench-launch" ends_with 0 "$B/bench/bench-launch" --iterations 2

"$B/bin/filler" --ready-file "$tmp/ready" --stop-file "$tmp/stop" >"$tmp/filler.json" &
check "filler says when it is at work" eventually 30 test -e "$tmp/ready"
touch "$tmp/stop"
check "filler ends when it is told to, and checks what it did" wait $!
check "filler prints its counts" jq -e '.kernels > 0' "$tmp/filler.json"

check "a size must be a number" ends_with 2 "$B/bin/vector-add" --size many
check "an unknown option is an error" ends_with 2 "$B/bin/vector-add" --no-such-option
exit $failed
