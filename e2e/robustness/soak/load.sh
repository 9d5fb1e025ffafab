# Sourced: the pods of a soak. Each slot always has one pod; a pod that ends or is killed is replaced. A pod's name has
# its slot, its level and its number, for the checks.
# shellcheck shell=bash disable=SC2034,SC2154

declare -A killed  # pods that we ended ourselves
declare -A told    # pods that were told to stop
slot_pod=()        # of each slot; empty: none yet
generation=0
n_ended=0 n_refused=0

# A pod's CPU. All pods of a node fit on two CPUs, with half as many that are still being ended.
cpu=35m

# The programs by slot: services run until they are told to stop, jobs end by themselves. All check their results.
kinds=(filler busy busy order storm busy sums intruder)

command_of() { # KIND NAME
    local gaps="--gap-min-us 200000 --gap-max-us 800000"
    case $1 in
    filler) echo "exec filler --waves 1 --stop-file /shared/stop-$2" ;;
    busy) echo "exec burst --kernels 2 --requests 1000000 $gaps --stop-file /shared/stop-$2" ;;
    order) echo "stream-order --iterations 60 && sleep $pause" ;;
    storm) echo "memory-storm --processes 3 --iterations 60 && sleep $pause" ;;
    sums) echo "reduction && matrix-multiply && sleep $pause" ;;
    intruder) echo "intruder && vector-add && sleep $pause" ;;
    esac
}

is_service() { # SLOT
    case ${kinds[$1 % ${#kinds[@]}]} in
    filler | busy) return 0 ;;
    *) return 1 ;;
    esac
}

# A pod for slot I, with the slot's QoS class and annotations.
launch() {
    local slot=$1 kind=${kinds[$1 % ${#kinds[@]}]} level=$(($1 % 3)) classes=(besteffort burstable guaranteed)
    local qos=${classes[level]} annotation='' memory='' name
    case $kind in
    filler) qos=besteffort level=0 ;;
    # Guaranteed, so that their CPU is limited: they would take a whole CPU.
    order | storm) qos=guaranteed level=2 ;;
    busy) [ $((slot % 8)) != 5 ] || { annotation=low level=0; } ;;
    esac
    [ "$kind" != storm ] || memory=48Mi
    generation=$((generation + 1))
    name=s$slot-l$level-$generation
    slot_pod[slot]=$name
    qos=$qos annotation=$annotation memory=$memory cpu=$cpu pod "$name" 10 "$(command_of "$kind" "$name")"
}

# NAME PHASE REASON, of each pod.
list_pods() {
    api GET /api/v1/namespaces/default/pods 2> /dev/null | jq -r '.items[] |
        select(.metadata.deletionTimestamp == null) | "\(.metadata.name) \(.status.phase) \(.status.reason // "-")"'
}

# Judges the end of a pod: was it killed by us, was it done, or is it a violation?
judge_end() { # SLOT NAME PHASE REASON
    local why
    [ -z "${killed[$2]:-}" ] || return 0
    if [ "$3" = Succeeded ]; then
        ! is_service "$1" || [ -n "${told[$2]:-}" ] || violation "pod $2 ended by itself"
        return
    fi
    why=$(explain "$2" | tail -n 12)
    if [[ "$4" == UnexpectedAdmissionError || "$4" == OutOf* ]] && { away_lately plugin 60 || away_lately kubelet 60; }; then
        n_refused=$((n_refused + 1)) # the kubelet had no plugin
    elif [[ "$why" == *StartError* || "$why" == *ContainerStatusUnknown* ]] && away_lately kubelet 60; then
        n_refused=$((n_refused + 1)) # it died while it started the container
    else
        violation "pod $2 failed: $why"
    fi
}

# Every slot has its pod. False: the API server is away.
upkeep() {
    local listed name phase reason slot launched=0
    local -A phases reasons
    listed=$(list_pods) || return 1
    while read -r name phase reason; do
        [ -n "$name" ] && phases[$name]=$phase reasons[$name]=$reason
    done <<< "$listed"
    for ((slot = 0; slot < pods; slot++)); do
        name=${slot_pod[slot]:-}
        phase=${phases[${name:-none}]:-}
        case $phase in
        Pending | Running) continue ;;
        Succeeded | Failed)
            judge_end "$slot" "$name" "$phase" "${reasons[$name]}"
            n_ended=$((n_ended + 1))
            api DELETE "/api/v1/namespaces/default/pods/$name?gracePeriodSeconds=0" > /dev/null 2>&1
            rm -f "$W/shared/stop-$name"
            ;;
        esac
        # A few at a time.
        [ -n "${stopping:-}" ] || [ $launched -ge 4 ] || launch "$slot" 2> /dev/null || return 1
        launched=$((launched + 1))
    done
}

# Tells all pods to stop; those that were not killed must succeed.
none_left() {
    upkeep && [ -z "$(list_pods)" ]
}

stop_load() {
    local slot end=$((SECONDS + 120 + pause)) # some sleep, and may just have begun
    stopping=1
    pause=0
    for ((slot = 0; slot < pods; slot++)); do
        [ -n "${slot_pod[slot]:-}" ] || continue # the node was too slow to have one there
        touch "$W/shared/stop-${slot_pod[slot]}"
        told[${slot_pod[slot]}]=1
    done
    until none_left; do
        [ $SECONDS -lt $end ] || {
            violation "pods do not end: $(list_pods | tr '\n' ';')"
            break
        }
        sleep 1
    done
}
