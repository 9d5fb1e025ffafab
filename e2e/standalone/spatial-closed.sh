#!/bin/bash
# Under MPS a client that was started on half of the SMs leaves the others to higher levels all the time: its kernels, in
# no form, work on beside a client for which `yield: needed` holds while that needs no more than these.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare filler
export WEIR_SIM_SMS=16 WEIR_SIM_BLOCK_US=500 WEIR_FORM=native
sed -i 's|  rules:|  rules:\n    - {uid: 65531, level: high, yield: needed}|' "$work/agent.yaml"

. e2e/standalone/fillers.sh
done_by() { status "[.clients[] | select(.uid == $1) | .launches] | add // 0"; }
has_done() { [ "$(done_by "$1")" -ge "$2" ]; } # UID LAUNCHES

# Both work: the one above is never idle, so the one below passes no gate that waits for any demand. It asks for so many
# SMs, whatever it finds faster.
beside() { # BLOCKS
    WEIR_YIELD_SMS=$1 begin 65531 "$1"
    high=$pid
    check "one above works without a pause" eventually 60 has_done 65531 20
    check "it needs $1 SMs" eventually 30 shows 65531 smsNeeded "$1"
    before=$(done_by 65534)
}
# Where this machine stops the one above for long, the one below has the GPU: then another time shows it.
waited() { # what its gates let pass before is all that the one below did
    local above below
    above=$(done_by 65531) below=$(done_by 65534)
    eventually 60 has_done 65531 $((above + 40)) && [ "$(done_by 65534)" -le $((below + 3)) ]
}
waits() {
    check "the one above works on, and the one below waits" eventually 60 waited
    before=$(done_by 65534)
    end 65531 "$high"
    check "until the other has ended" eventually 60 has_done 65534 $((before + 20))
}

check "the agent is up" start_agent
CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 begin 65534 64
low=$pid
check "its kernels run" eventually 60 has_done 65534 20
check "the agent knows on how many SMs it runs at most" eventually 30 shows 65534 smsGiven 10
beside 4
check "all its SMs are left to it" eventually 30 shows 65534 smsLeft 10
check "it works on: so many SMs are free" eventually 60 has_done 65534 $((before + 20))
end 65531 "$high"
beside 12
waits
end 65534 "$low"

begin 65534 64
low=$pid
check "on all SMs its kernels run" eventually 60 has_done 65534 20
beside 4
waits
end 65534 "$low"
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
