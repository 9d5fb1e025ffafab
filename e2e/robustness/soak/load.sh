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

# Attacks of e2e/robustness/hostile, one after the other in the last slots. A client that forges demand may do so towards
# lower levels, so it has less time than a client below may stand still.
attacks=(lease http compile accounts bits forge object flood memory garbage rights orphan)
n_attacks=0
attack_s=$((duration / 10 < 20 ? duration / 10 : 20))

# The programs by slot: services run until they are told to stop, jobs end by themselves. All check their results.
kinds=(filler busy busy order storm busy sums intruder)

kind_of() { # SLOT
    if [ "$1" -lt "$pods" ]; then
        echo "${kinds[$1 % ${#kinds[@]}]}"
    else
        echo "${attacks[n_attacks % ${#attacks[@]}]}"
    fi
}

command_of() { # KIND NAME
    local gaps="--gap-min-us 200000 --gap-max-us 800000"
    case $1 in
    filler) echo "exec filler --waves 1 --stop-file /shared/stop-$2" ;;
    busy) echo "exec burst --kernels 2 --requests 1000000 $gaps --stop-file /shared/stop-$2" ;;
    order) echo "stream-order --iterations 60 && sleep $pause" ;;
    storm) echo "memory-storm --processes 3 --iterations 60 && sleep $pause" ;;
    sums) echo "reduction && matrix-multiply && sleep $pause" ;;
    intruder) echo "intruder && vector-add && sleep $pause" ;;
    *)
        # shellcheck disable=SC2016
        echo "WEIR_METRICS_PORT=$metrics_port hostile /run/weir/agent.sock \$WEIR_GPU $1 $attack_s"
        ;;
    esac
}

is_service() { # SLOT
    case $(kind_of "$1") in
    filler | busy) return 0 ;;
    *) return 1 ;;
    esac
}

# A pod for slot I, with the slot's QoS class and annotations.
launch() {
    local slot=$1 kind level=$(($1 % 3)) classes=(besteffort burstable guaranteed)
    kind=$(kind_of "$slot")
    [ "$slot" -lt "$pods" ] || level=0 n_attacks=$((n_attacks + 1))
    local qos=${classes[level]} annotation='' memory='' name
    case $kind in
    filler) qos=besteffort level=0 ;;
    # Guaranteed, so that their CPU is limited: they would take a whole CPU.
    order | storm) qos=guaranteed level=2 ;;
    forge) qos=burstable level=1 ;;
    busy) [ $((slot % 8)) != 5 ] || { annotation=low level=0; } ;;
    esac
    case $kind in storm | memory) memory=48Mi ;; esac
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
    for ((slot = 0; slot < slots; slot++)); do
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
    for ((slot = 0; slot < slots; slot++)); do
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
