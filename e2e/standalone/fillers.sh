# Sourced by tests of clients that run at the same time, after e2e/standalone/machine.sh and prepare: clients under MPS
# with work all the time, and what the agent shows of them.
# shellcheck shell=bash disable=SC2034,SC2154

under_mps

# A client that has work until its stop file is there.
begin() { # UID BLOCKS
    rm -rf "${work:?}/$1" && mkdir -m 777 "$work/$1"
    governed "$1" filler --size "$2" --depth 2 --stop-file "$work/$1/stop" --ready-file "$work/$1/ready" \
        >"$work/filler-$1.log" 2>&1 &
    clients[$!]="filler of $1"
    pid=$!
    check "a client of $1 with $2 blocks is at work" eventually 60 test -e "$work/$1/ready"
}
end() { # UID PID
    touch "$work/$1/stop"
    check "every value of $1 is right" wait "$2"
    unset "clients[$2]"
}
shows() { # UID FIELD VALUE
    [ "$(status "[.clients[] | select(.uid == $1) | .$2] | unique | tojson" -r)" = "[$3]" ]
}
