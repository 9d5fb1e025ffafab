#!/bin/bash
# Runs weir-sim on the traces in traces/. NAME.POLICY.want is its output, event by event, with an agent that sees all
# at once; NAME.POLICY-mps.want is that under MPS. UPDATE=1 writes them. Also: errors in a trace name their place, the
# result depends on trace, options and seed alone, and an hour with a thousand clients is simulated.
# shellcheck disable=SC2317 # `check` calls the functions
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
B=$(realpath "$B")
cd agent/tests/traces || exit
sim=$B/bin/weir-sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

golden() { # NAME POLICY[-mps]
    local mps=()
    [ "$2" = "${2%-mps}" ] || mps=(--mps)
    "$sim" --policy "${2%-mps}" "${mps[@]}" --look 0ns --late 0ns --log "$1.trace" >"$work/out" || return
    [ -z "${UPDATE:-}" ] || cp "$work/out" "$1.$2.want"
    diff -u "$1.$2.want" "$work/out"
}

refuses() { # TRACE-TEXT MESSAGE
    printf '%b' "$1" | "$sim" - >"$work/out" 2>&1
    [ $? -eq 2 ] && grep -qxF "weir-sim: stdin:$2" "$work/out" || { cat "$work/out"; return 1; }
}

for want in *.want; do
    name=${want%.want}
    check "${name#*.} on ${name%.*}" golden "${name%.*}" "${name#*.}"
done

check "an unknown word" refuses 'client a\nrun a' '2: expected client, work or end, not `run`'
check "an unknown client" refuses 'work 1ms a 1ms' '1: no client `a` above'
check "a client that is defined twice" refuses 'client a\nclient a' '2: client `a` is defined twice'
check "a bad duration" refuses 'client a slo=2' '1: expected a duration like 250us or 1.5s, not `2`'
check "a bad overlap" refuses 'client a\nclient b overlap=2' '2: expected a duration like 250us or 1.5s, not `2`'
check "a bad number of SMs" refuses 'client a sms=0' '1: expected a number from 1 to 65535, not `0`'
check "a bad number of workers" refuses 'client a fit=33' '1: expected a number from 1 to 32, not `33`'
check "a bad part of the GPU's memory" refuses 'client a memory=2' '1: expected a number above 0 and at most 1, with up to three decimals, not `2`'
check "a bad yield" refuses 'client a sms=8 yield=half' '1: expected auto, whole, needed, needed+N% with N from 0 to 100, or a number of SMs from 1 to 9999, not `half`'
check "a bad minimum rate" refuses 'client a always min-rate=1.5' '1: expected a number above 0 and at most 1, with up to three decimals, not `1.5`'
check "a bad time to leave" refuses 'client a evict=once' '1: expected a duration like 5ms or never, not `once`'
check "a bad share" refuses 'client a share=0' '1: expected a number from 1 to 100, not `0`'
check "a bad level" refuses 'client a level=top' '1: expected low, normal, high or critical, not `top`'
check "a bad name" refuses 'client a"' '1: expected a name of letters, digits and ._/-, not `a"`'
check "too few words" refuses 'client a\nwork 1ms a' '2: expected a duration at the end of the line'
check "too many words" refuses 'end 1s 2s' '1: expected nothing more, not `2s`'

crowd() { # SEED
    "$sim" --policy "$policy" --for 1h --seed "$1" --rows 1000 crowd.trace
}
impossible() { # OPTION...: is refused at once
    timeout 30 "$sim" "$@" crowd.trace >"$work/out" 2>&1
    [ $? -eq 64 ]
}
check "a time slice of no length is refused" impossible --slice 0s --switch 0s
check "so is a switch that costs nothing" impossible --policy ffs --cost 0s
check "so is no quantum" impossible --policy wfq --quantum 0s --late 0s
check "so is no shortest run" impossible --policy wfq --min-quantum 0s --late 0s

switches() { # OPTION...: in 10 s of two clients
    echo 'client a copies=2 always' | "$sim" --policy ffs --mps --evict 30us --look 0ns --late 0ns --for 10s --json "$@" - | jq .switches
}
rounds() { # of 2 ms, where switches of 30 us are 3 %; of 20 ms
    [ "$(switches)" -eq 10000 ] && [ "$(switches --cost 300us)" -eq 1000 ]
}
check "ffs has longer rounds where a switch costs more" rounds

of() { # POLICY TRACE FILTER OPTION...
    "$sim" --policy "$1" --look 100us --late 60us --json "${@:4}" "$2.trace" | jq -e "$3"
}
within_shares() { # TRACE OPTION...: whpf's ANTT is at most 3 % above hpf's
    of whpf "$1" ".antt <= 1.03 * $(of hpf "$1" .antt "${@:2}")" "${@:2}" >/dev/null
}
parts='[.clients[].gpuSeconds] as $of | [range(4) | 100 * $of[.] / ($of | add) - 10 * (. + 1) | fabs] | max < 0.5'
seconds='(.busySeconds / .seconds) as $busy |
    [.clients[] | .share as $share | (.shareMin, .shareMax) * 100 / $busy - $share | fabs] | max <= 2'
for mps in "" --mps; do
    check "whpf serves short work as soon as hpf ($mps)" within_shares pair $mps
    check "also that of three clients ($mps)" within_shares triplet $mps
    check "gives 10:20:30:40 where all always have work ($mps)" of whpf parts "$parts" $mps
    check "and does so in each second, within 2 points ($mps)" of whpf parts "$seconds" $mps
done

equals() { # N SWITCH: ffs leaves them to the hardware's slices; each has its part of each second, within 1 point
    echo "client a copies=$1 always work=20ms launch=520us" |
        "$sim" --policy ffs --hardware --switch "$2" --look 800us --for 60s --json - | jq -e '
            (.busySeconds / .seconds) as $busy | (100 / (.clients | length)) as $share |
            [.clients[] | (.shareMin, .shareMax) * 100 / $busy - $share | fabs] | max <= 1' >/dev/null
}
for switch in 150us 250us 350us 450us; do
    for n in 2 3 4 5 6 7 8; do
        check "ffs: parts of $n equal clients with slices, a switch of $switch" equals "$n" "$switch"
    done
done

unwritten() { # OPTION...
    "$sim" "$@" --rows 1000 crowd.trace >/dev/full 2>"$work/out"
    [ $? -eq 1 ] && grep -q '^weir-sim: ' "$work/out"
}
check "a result that cannot be written is an error" unwritten
check "so is JSON" unwritten --json

for policy in hpf whpf ffs static dynamic wfq coexec; do
    crowd 1 >"$work/first"
    check "$policy: an hour with a thousand clients" grep -q '^time 3600' "$work/first"
done
crowd 1 >"$work/again"
check "the same seed gives the same result" cmp -s "$work/first" "$work/again"
crowd 2 >"$work/again"
check "another seed gives another" bash -c "! cmp -s $work/first $work/again"
adds_up() {
    "$sim" --mps --json ends.trace | jq -e '.sharedSeconds > 0 and (
        ([.clients[].gpuSeconds] | add) - .busySeconds - .sharedSeconds | fabs < 1e-8)' >/dev/null
}
check "the clients' time is the GPU's, plus what two of them shared" adds_up
check "JSON is JSON" bash -c "$sim --json crowd.trace | jq -e '.clients | length == 1000' >/dev/null"
exit $failed
