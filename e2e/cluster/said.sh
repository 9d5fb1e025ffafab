# Sourced after health.sh: whatever Weir does not do as a pod asks, it says in an event, a metric and `weirctl explain`.
# shellcheck shell=bash

# Annotations that do not hold: NAME VALUE WORDS, where the words are in the event and in the explanation.
odd_annotations=(
    "priority|high|refused: the pod has level low"
    "priority|critical|levels.raiseNamespaces"
    "priority|High|'High' is no level"
    "priority|2|'2' is no level"
    "priority| low|' low' is no level"
    "priority||is empty"
    "latency-slo|2|'2' is no objective"
    "latency-slo|10us|'10us' is no objective"
    "latency-slo|1m|'1m' is no objective"
    "latency-slo|fast|'fast' is no objective"
    "memory|900Mi|cut to 306 MiB"
    "memory|8GB|'8GB' is no limit"
    "memory|1Mi|'1Mi' is no limit"
    "memory|50%|'50%' is no limit"
    "weight|90|refused: above the container's 30 shares"
    "weight|0|'0' is no weight"
    "weight|1.5|'1.5' is no weight"
    "weight|000000000000000000000000000000000007|'0000000000000000000000000000...' is no weight"
    "compute-limit|0|'0' is no limit"
    "compute-limit|30%|'30%' is no limit"
    "yield|needed+101%|'needed+101%' is not understood"
    "min-rate|1.2|'1.2' is no minimum rate"
    "prio|high|weir.dev/prio is no annotation of Weir"
    "latencySlo|2ms|weir.dev/latencySlo is no annotation of Weir"
)

# Without -q: a grep that ends early makes the program before it fail.
explained() { # NAME WORDS
    timeout 5 "$B/bin/weirctl" --socket "$W/control.sock" explain "$1" | grep -F -- "$2" > /dev/null
}

# has_metric LINE: the agent's metrics have this line.
has_metric() {
    curl -sS -m 5 http://127.0.0.1:9477/metrics | grep -xF -- "$1" > /dev/null
}

# Each one is in the explanation and in the metrics as soon as the agent has seen it; events may take longer.
annotations() {
    local entry name value words kind
    pod odd 30 'exec sleep 1000' && until_ok 20 phase_is odd Running || return 1
    for entry in "${odd_annotations[@]}"; do
        IFS='|' read -r name value words <<< "$entry"
        kind=invalid
        [[ $words != *refused:* && $words != *cut\ to* && $words != *raiseNamespaces* ]] || kind=refused
        pod_note odd "$name" "$(jq -n --arg value "$value" '$value')" && until_ok 20 explained odd "$words" || {
            echo "# $name '$value': no explanation with: $words"
            timeout 5 "$B/bin/weirctl" --socket "$W/control.sock" explain odd | sed 's/^/# /'
            return 1
        }
        has_metric "weir_pod_problems{namespace=\"default\",pod=\"odd\",subject=\"weir.dev/$name\",problem=\"$kind\"} 1" || {
            echo "# $name '$value': no metric"
            return 1
        }
        pod_note odd "$name" null || return 1
    done
    until_ok 20 eval '! explained odd weir.dev/latencySlo' && ! curl -sS -m 5 http://127.0.0.1:9477/metrics | grep '^weir_pod_problems{' > /dev/null || return 1
    for entry in "${odd_annotations[@]}"; do
        IFS='|' read -r name value words <<< "$entry"
        until_ok 60 has_annotation_event odd "$words" || {
            echo "# $name '$value': no event with: $words"
            return 1
        }
    done
    echo "# ${#odd_annotations[@]} annotations: each with an event, a metric and an explanation"
}

has_annotation_event() {
    api GET "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=Pod,involvedObject.name=$1" |
        jq -e --arg words "$2" '.items | any((.reason | startswith("Annotation")) and (.message | contains($words)))' > /dev/null
}

# A mistake in the configuration of a running agent, which has a pod: an event of the node, a metric, the explanation.
mistakes() {
    local good=$W/agent.good.yaml
    pod governed 10 'exec sleep 1000' && until_ok 20 phase_is governed Running && cp "$W/agent.yaml" "$good" || return 1
    echo "polcy: hpf" >> "$W/agent.yaml"
    until_ok 20 has_metric 'weir_config_last_reload_successful 0' &&
        hears Node "$NODE" ConfigurationRefused 'unknown key `polcy`' && explained governed 'unknown key `polcy`' || {
        timeout 5 "$B/bin/weirctl" --socket "$W/control.sock" explain governed | sed 's/^/# /'
        mv "$good" "$W/agent.yaml"
        return 1
    }
    mv "$good" "$W/agent.yaml"
    until_ok 20 has_metric 'weir_config_last_reload_successful 1' && ! explained governed 'stays in force'
}

refused_so_far() {
    curl -sS -m 5 http://127.0.0.1:9477/metrics | sed -n 's/^weir_pods_refused_total //p'
}

refusals_are() {
    [ "$(refused_so_far)" = "$1" ]
}

# refuses SHARES WORDS: the pod fails and says why, in its status, an event of the agent, and the explanation.
refuses() {
    local name=bad-$1
    pod "$name" "$1" true && until_ok 20 phase_is "$name" Failed && until_ok 20 explained "$name" "$2" &&
        until_ok 20 has_event Pod "$name" GPUShareRefused "$2" && return
    echo "# $1 shares: no event or explanation with: $2"
    pod_get "$name" .status | sed 's/^/# /'
    return 1
}

# Requests that no GPU can serve; then two GPUs that offer 40 shares each, and requests that fit only on both.
requests() {
    local before shares
    before=$(refused_so_far)
    for shares in 101 150 199 250; do
        refuses $shares "$shares shares do not fit on one GPU" || return 1
    done
    refuses 900 "Requested: 900" || return 1
    cp "$W/plugin.yaml" "$W/plugin.whole.yaml"
    {
        echo "gpus:"
        for shares in $(seq 0 $((SIM_GPUS - 1))); do echo "- {index: $shares, shares: $((shares < 2 ? 40 : 0))}"; done
    } >> "$W/plugin.yaml"
    until_ok 30 allocatable_is 80 || return 1
    for shares in 41 50 60 79 80; do
        refuses $shares "no GPU of this node had $shares shares free" || return 1
    done
    until_ok 20 label_is largest-free 40 && label_is free 40-40 && label_is free-gpus 0 &&
        explained bad-50 "the largest part that fits: 40; whole GPUs: 0" || {
        echo "# labels: $(api GET "/api/v1/nodes/$NODE" | jq -c .metadata.labels)"
        return 1
    }
    mv "$W/plugin.whole.yaml" "$W/plugin.yaml"
    until_ok 20 refusals_are $((before + 10)) && until_ok 30 allocatable_is $((SIM_GPUS * 100)) && until_ok 20 label_is free-gpus $SIM_GPUS || {
        echo "# weir_pods_refused_total: $before, then $(refused_so_far)"
        return 1
    }
    echo "# 10 requests: each with an event, an explanation and a count"
}
