# Sourced after weir.sh: pods with work, and the agent's view of them.
# shellcheck shell=bash

# Commands of pods. A worker makes requests of a few kernels with pauses; a filler keeps the GPU full. Both end when
# /shared/NAME.stop appears, and check their results.
worker() {
    echo "exec burst --kernels 2 --requests 1000000 --gap-min-us 20000 --gap-max-us 50000 --stop-file /shared/$1.stop --ready-file /shared/$1.ready"
}

filler() {
    echo "exec filler --waves 4 --stop-file /shared/$1.stop --ready-file /shared/$1.ready"
}

ready() {
    test -e "$W/shared/$1.ready"
}

# starts NAME SHARES COMMAND: creates a pod and waits until it is at work.
starts() {
    rm -f "$W/shared/$1".*
    pod "$@" && until_ok 20 ready "$1" && until_ok 20 phase_is "$1" Running || {
        explain "$1"
        return 1
    }
}

# finishes NAME...: tells the pods to end; their results are right.
finishes() {
    local name
    for name in "$@"; do touch "$W/shared/$name.stop"; done
    for name in "$@"; do succeeds "$name" 30 || return 1; done
}

# client NAME FILTER: a field of the pod's only client in the agent's status.
client() {
    status | jq -r --arg pod "$1" ".clients[] | select(.pod == \$pod) | $2"
}

# The agent has decided on the level, and the library acts on it.
level_is() {
    [ "$(client "$1" '"\(.level) \(.actingLevel)"')" = "$2 $2" ]
}

# has_level NAME LEVEL: within 10 s.
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

# unharmed NOTED NAME...: the containers are those that were noted, and still at work.
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
