#!/bin/bash
# Upgrade and roll-back under running programs: the previous library with this agent, this library with the previous
# agent, and agents of both releases in turn. e2e/robustness/compat/previous names the previous release, a tag or a
# commit, which is built here. A shallow clone does not have it and skips that part. The
# protocol's first version is in e2e/robustness/compat.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
nvml='' hardware='' # the previous agent does not know the latter, and the first version's client names a GPU of its own
prepare filler burst vector-add compat-client compat-agent
mkdir -m 777 "$work/files"
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=500

# agent_of FOLDER
agent_of() {
    rm -f "$work/control.sock"
    "$1/bin/weir-agent" --config "$work/agent.yaml" --standalone >>"$work/agent.log" 2>&1 &
    agent=$!
    eventually 10 test -S "$work/control.sock"
}

end_agent() {
    [ -z "$agent" ] || { kill -TERM "$agent"; wait "$agent"; }
    agent=
}

# use LIBRARY: what the next programs are governed by.
use() { cp "$1" "$work/.new" && chmod a+r "$work/.new" && mv "$work/.new" "$work/libweir.so"; }

# begin NAME UID PROGRAM...: until it is at work.
begin() {
    local name=$1
    shift
    governed "$@" --ready-file "$work/files/$name.ready" --stop-file "$work/stop" >"$work/$name.log" 2>&1 &
    clients[$!]=$name
    eventually 30 test -e "$work/files/$name.ready"
}

FILLER=(filler --waves 4)
BURST=(burst --kernels 2 --requests 1000000 --gap-min-us 20000 --gap-max-us 40000)

levels() { status -c '[.clients[] | .level] | sort'; }
levels_are() { [ "$(levels)" = "$1" ]; }
waits() { status '[.clients[] | select(.level == 0) | .waits] | add'; }
waits_more() { [ "$(waits)" -gt "$1" ]; }
# Clients of the lower level are held now, not only once before.
held() {
    local before
    before=$(waits) && eventually 20 waits_more "$before"
}

end_programs() {
    local pid status=0
    touch "$work/stop"
    for pid in "${!clients[@]}"; do
        wait "$pid" || { echo "# exit status $?: ${clients[$pid]}"; status=1; }
        unset "clients[$pid]"
    done
    rm -f "$work/stop" "$work"/files/*
    return $status
}

# Clients and agents that know no more than the first version of the protocol says.
check "the agent is up" start_agent
check "a client of the protocol's first version" timeout 30 "$work/bin/compat-client" "$work/agent.sock"
end_agent
rm -f "$work/agent.sock"
"$work/bin/compat-agent" "$work/agent.sock" >"$work/compat-agent.log" 2>&1 &
clients[$!]="compat agent"
compat=$!
eventually 10 test -S "$work/agent.sock"
check "this library with an agent of the first version: the top level" governed 0 vector-add
check "and the lowest" governed 65534 vector-add
kill -TERM "$compat"
check "which it has told what it did" wait "$compat"
unset "clients[$compat]"
rm -f "$work/agent.sock"

commit=$(grep -v '^#' e2e/robustness/compat/previous)
previous=$PWD/$B/previous-$commit
this=$PWD/$B
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
    echo "ok - previous release # SKIP this clone has no commit $commit"
    exit $failed
fi
[ -x "$previous/bin/weir-agent" ] || e2e/robustness/compat/build.sh "$commit" "$previous" >"$work/build.log" 2>&1
report $? "the previous release ($commit) is built"
[ -x "$previous/bin/weir-agent" ] || { tail -n 20 "$work/build.log"; exit 1; }

agent_of "$previous"
use "$previous/lib/libweir.so"
begin old-low 65534 "${FILLER[@]}" && begin old-high 0 "${BURST[@]}"
report $? "the previous library with its own agent"
use "$this/lib/libweir.so"
begin new-low 65534 "${FILLER[@]}" && eventually 10 levels_are '[0,0,2]' && held
report $? "beside this library"
for round in upgrade roll-back upgrade; do
    end_agent
    [ $round = upgrade ] && folder=$this || folder=$previous
    agent_of "$folder" && eventually 10 levels_are '[0,0,2]' && held
    report $? "$round of the agent: all come back, and the lower level is held"
done
use "$previous/lib/libweir.so"
check "a program that starts with the previous library under this agent" governed 65534 vector-add
check "they all end with right values" end_programs
[ $failed -eq 0 ] || { tail -n 5 "$work"/*.log; exit 1; }
