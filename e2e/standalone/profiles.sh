#!/bin/bash
# Profiles that last: one process finds out how its kernel runs best. A later one of the same user begins with that; one of
# another user does not. They outlive the agent. An administrator lists, exports, forgets and imports them.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare filler
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=1000 # kernels of 5 ms, whose times vary little
mkdir "$work/cache"
echo "compile: {mode: ptx, cacheDir: $work/cache}" >>"$work/agent.yaml"

profile() { # ARGUMENT...
    "$B/bin/weirctl" --socket "$work/control.sock" profile "$@"
}
known() { # SCOPE
    [ "$(profile export --namespace "$1" | jq -s length)" -gt 0 ]
}
says() { # NAME TEXT
    grep -q "$2" "$work/$1.log"
}

# Runs the program as user UID until the log of libweir has the text.
runs_until() { # NAME UID TEXT
    local stop=$work/sim/stop-$1
    WEIR_LOG=debug governed "$2" filler --depth 2 --waves 5 --seconds 60 --stop-file "$stop" >"$work/$1.log" 2>&1 &
    clients[$!]=$1
    eventually 50 says "$1" "$3"
    local result=$?
    touch "$stop"
    wait $! || result=1
    unset "clients[$!]"
    return $result
}

stop_agent() {
    kill "$agent"
    wait "$agent"
    agent=
}

check "the agent is up" start_agent
check "nothing is known yet" [ -z "$(profile export)" ]
check "a first process compares" runs_until first 65534 'measured\|every form is more'
check "and teaches" eventually 20 known uid:65534
check "a second one is settled at once" runs_until second 65534 'by its profile'
check "without a comparison" bash -c "! grep -q 'candidate .* takes' $work/second.log"
check "the same on the list" bash -c "$B/bin/weirctl --socket $work/control.sock profile list | grep -q '^uid:65534 '"
check "another user's process compares" runs_until other 65533 'measured\|every form is more'
check "because it sees no profile" bash -c "! grep -q 'by its profile' $work/other.log"

stop_agent
check "profiles have a file" test -s "$work/cache/profiles"
check "the agent starts again" start_agent
check "and knows them" known uid:65534
profile export --namespace uid:65534 >"$work/exported"
check "they can be forgotten" profile forget --all
check "then nothing is known" [ -z "$(profile export)" ]
check "and imported for everybody" profile import --namespace '*' "$work/exported"
check "also by a third user" runs_until third 0 'by its profile'
echo '{"kernel": "none"}' >"$work/wrong"
check "nonsense is not imported" bash -c "! $B/bin/weirctl --socket $work/control.sock profile import $work/wrong 2>/dev/null"

stop_agent
printf 'x' | dd of="$work/cache/profiles" bs=1 seek=200 conv=notrunc status=none
check "the agent starts with a damaged file" start_agent
check "which is set aside with one line" [ "$(grep -c 'set aside' "$work/agent.log")" = 1 ]
check "and kept" test -s "$work/cache/profiles.bad"
[ $failed -eq 0 ] || { tail -n 12 "$work"/*.log; exit 1; }
