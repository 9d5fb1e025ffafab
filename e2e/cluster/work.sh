# Sourced after weir.sh: pods at work, and what the agent says of them.
# shellcheck shell=bash

# Commands of pods. A worker makes requests of a few kernels with pauses, a filler takes all it gets;
# both check what they computed at the end, which comes with /shared/NAME.stop.
worker() {
    echo "exec burst --kernels 2 --requests 1000000 --gap-min-us 20000 --gap-max-us 50000 --stop-file /shared/$1.stop --ready-file /shared/$1.ready"
}

filler() {
    echo "exec filler --waves 4 --stop-file /shared/$1.stop --ready-file /shared/$1.ready"
}

ready() {
    test -e "$W/shared/$1.ready"
}

# starts NAME SHARES COMMAND: a pod, until it is at work.
starts() {
    rm -f "$W/shared/$1".*
    pod "$@" && until_ok 20 ready "$1" && until_ok 20 phase_is "$1" Running || {
        explain "$1"
        return 1
    }
}

# finishes NAME...: they end when told to, and what they computed is right.
finishes() {
    local name
    for name in "$@"; do touch "$W/shared/$name.stop"; done
    for name in "$@"; do succeeds "$name" 30 || return 1; done
}

# client NAME FILTER: of the pod's one client, as the agent sees it.
client() {
    status | jq -r --arg pod "$1" ".clients[] | select(.pod == \$pod) | $2"
}

# The agent has decided so, and the library acts on it.
level_is() {
    [ "$(client "$1" '"\(.level) \(.actingLevel)"')" = "$2 $2" ]
}

# has_level NAME LEVEL: it comes to have it.
has_level() {
    until_ok 10 level_is "$1" "$2" && return
    echo "# $1 has level '$(client "$1" .level)', not $2: $(client "$1" .reason)"
    return 1
}

gone() {
    [ -z "$(client "$1" .level)" ]
}

# more NAME FILTER THAN
more() {
    [ "$(client "$1" "$2")" -gt "$3" ]
}

works() {
    local before
    before=$(client "$1" .launches)
    until_ok 10 more "$1" .launches "$before"
}

# unharmed NAME...: the same containers as when they were noted, still at work.
containers() {
    local name
    for name in "$@"; do
        pod_get "$name" '.status.containerStatuses[0] | "\(.containerID) \(.restartCount)"'
    done
}

unharmed() {
    local noted=$1 name
    shift
    [ "$(containers "$@")" = "$noted" ] || {
        echo "# containers were: $noted; are: $(containers "$@")"
        return 1
    }
    for name in "$@"; do
        works "$name" || {
            echo "# $name does not go on"
            return 1
        }
    done
}

held() {
    [ "$(client "$1" .state)" = held ]
}
