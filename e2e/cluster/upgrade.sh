# Sourced after work.sh: upgrades and roll-backs under the pods `high` and `low`, and how long the requests of `high`
# take meanwhile. No time is judged here: other work on this machine makes any of them longer.
# shellcheck shell=bash

# What may make a request longer during Weir's upgrade: Weir, or the host's CPUs, on which helm, API server, kubelet and
# new containers run beside the simulated GPU. Two comparisons tell them apart:
#
#   - the upgrade of another DaemonSet, with as many containers of the same images, has nothing to do with Weir;
#   - real-time threads run before everything else of the host, as a real GPU does, which does not need the host's CPUs.
#     What is longer then, Weir has made longer.

REQUESTS_BEFORE=300 # the longest of few says little
PODS_ARE=ordinary
longest_before=

# high_pod NAME: sends requests all the time, with a CPU of its own as the pod of somebody who measures them.
high_pod() {
    cpu=1 qos=guaranteed starts "$1" 20 "$(worker "$1") --gap-min-us 10000 --gap-max-us 30000 --log /shared/$1.log"
}

# requests FROM TO: number, median, 99 % and longest, in ms, of the requests of `high` that ended between two times.
requests() {
    awk -v from="$1" -v to="$2" '$1 >= from && $1 <= to { print $2 / 1000 }' "$W/shared/high.log" | sort -n |
        awk '{ ms[NR] = $1 }
            END { printf "%d %.1f %.1f %.1f\n", NR, ms[int((NR + 1) / 2)], ms[int(NR * .99 + .5)], ms[NR] }'
}

# during WHAT COMMAND...: prints what the requests took while the command ran. WHAT `before` is what later ones are
# compared with.
during() {
    local what=$1 began n median most longest more=
    shift
    began=$(date +%s.%N)
    "$@" || return 1
    read -r n median most longest < <(requests "$began" "$(date +%s.%N)")
    if [ "$what" = before ]; then
        longest_before=$longest
        row "HIGH, threads $PODS_ARE" "" requests median "99 %" "longest ms" "more than before" "load of $(nproc) CPUs"
    else
        more=$(awk -v a="$longest" -v b="$longest_before" 'BEGIN { printf "%+.1f", a - b }')
    fi
    row "" "$what" "$n" "$median" "$most" "$longest" "$more" "$(cut -d' ' -f1 /proc/loadavg)"
}

row() {
    printf '# %-23s  %-19s  %8s  %6s  %7s  %10s  %16s  %14s\n' "$@"
}

requests_are() { # FROM NUMBER
    [ "$(awk -v from="$1" '$1 >= from' "$W/shared/high.log" | wc -l)" -ge "$2" ]
}

before() {
    until_ok 60 requests_are "$(date +%s.%N)" $REQUESTS_BEFORE
}

# The other DaemonSet.

# other_chart VERSION
other_chart() {
    local chart=$W/other-$1 part
    mkdir -p "$chart/templates"
    printf '%s\n' 'apiVersion: v2' 'name: other' 'version: 1.0.0' > "$chart/Chart.yaml"
    {
        cat << Y
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: other}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec:
      terminationGracePeriodSeconds: 0
      initContainers:
      - {name: first, image: "weir-device-plugin:$1", imagePullPolicy: Never, command: ["true"]}
      - {name: second, image: "weir-agent:$1", imagePullPolicy: Never, command: [weirctl, --help]}
      containers:
Y
        for part in third fourth; do
            echo "      - {name: $part, image: 'weir-device-plugin:$1', imagePullPolicy: Never, command: [sleep, 1d]}"
        done
    } > "$chart/templates/daemonset.yaml"
}

# other VERB ARGUMENT...: helm in a namespace that is not Weir's.
other() {
    RELEASE_NAMESPACE=other helm "$1" other "${@:2}" --wait --timeout 90s
}

other_upgrade() {
    other upgrade "$W/other-next" && until_ok 60 other_runs next
}

other_runs() {
    api GET /api/v1/namespaces/other/pods |
        jq -e --arg image "weir-agent:$1" '.items | length == 1 and
            (.[0] | .spec.initContainers[1].image == $image and (.status.containerStatuses | all(.ready)))'
}

# Upgrades another DaemonSet under both pods.
unrelated() {
    other_chart "$VERSION" && other_chart next && other install "$W/other-$VERSION" --create-namespace || return 1
    during "another DaemonSet" other_upgrade && other uninstall
}

# Real-time threads.

# real_time POD...: their threads run before everything else of the host.
real_time() {
    local pod pid
    for pod; do
        pid=$(pod_pid "$pod") && allow_real_time "$pid" && chrt --all-tasks --rr --pid 1 "$pid" || return 1
    done
}

# With cgroup v1 and CONFIG_RT_GROUP_SCHED each group of the path needs a time budget.
allow_real_time() { # PID
    local group name percent=90
    group=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ { print $2; exit }' /proc/self/mounts)
    [ -e "$group/cpu.rt_runtime_us" ] || return 0
    for name in $(awk -F: '$2 ~ /(^|,)cpu(,|$)/ { gsub("/", " ", $3); print $3 }' "/proc/$1/cgroup"); do
        group+=/$name
        # Two pods in the group of all pods.
        [ "$(cat "$group/cpu.rt_runtime_us")" -gt 0 ] || echo $((percent * 10000)) > "$group/cpu.rt_runtime_us" ||
            return 1
        [ "$name" != kubepods ] || percent=40
    done
}

# Weir's upgrade

# runs VERSION: the agent is of that version, and both pods are the noted ones and at work at their levels.
runs() {
    until_ok 60 node_runs "$1" && until_ok 30 allocatable_is $((SIM_GPUS * 100)) &&
        has_level low 0 && has_level high 2 && unharmed "$noted" low high || {
        describe
        return 1
    }
}

node_runs() {
    local address
    address=$(api GET "/api/v1/namespaces/$RELEASE_NAMESPACE/pods" | jq -re '.items[0].status.podIP') &&
        curl -sS --fail -m 10 "http://$address:9477/metrics" 2> /dev/null |
        grep "^weir_build_info{.*version=\"$1\"" > /dev/null
}

policy_is() {
    [ "$(status | jq -r .policy)" = "$1" ]
}

no_labels() {
    api GET "/api/v1/nodes/$NODE" |
        jq -e '[.metadata.labels | keys[] | select(startswith("weir.dev/gpu."))] == []' > /dev/null
}

# To another version, with another policy and without node labels.
upgrade() {
    helm upgrade weir "$W/next" -f "$W/values.yaml" --set policy=wfq,nodeLabels.enabled=false --wait --timeout 90s &&
        until_ok 60 policy_is wfq && runs next || {
        describe
        return 1
    }
}

roll_back() {
    helm rollback weir --wait --timeout 90s && until_ok 60 policy_is whpf && runs "$VERSION"
}

# No kernel of `high` ever waited for others behind a gate.
never_waited() {
    [ "$(client high .waits)" = 0 ] && return
    echo "# HIGH waited at gates $(client high .waits) times"
    return 1
}

# Cases

# helm upgrade under running pods, which keep their levels. An older library version that no pod uses is removed; the
# test adds such a version by hand.
upgrades() {
    local noted
    noted=$(containers low high)
    cp -r charts/weir "$W/next" && sed -i 's/^appVersion: .*/appVersion: next/' "$W/next/Chart.yaml" &&
        cp -r "$W/node/lib/weir/$VERSION" "$W/node/lib/weir/previous" || return 1
    during before before && unrelated && during "Weir's upgrade" upgrade && never_waited || return 1
    pod after-upgrade 10 "vector-add && grep -q /next/libweir.so /proc/self/mountinfo" &&
        succeeds after-upgrade 30 || return 1
    [ "$(cd "$W/node/lib/weir" && echo *)" = "$VERSION next" ] && no_labels || {
        echo "# versions: $(ls "$W/node/lib/weir"), labels: $(api GET "/api/v1/nodes/$NODE" | jq -c .metadata.labels)"
        return 1
    }
}

# helm rollback to the first version under the same pods.
rolls_back() {
    local noted
    noted=$(containers low high)
    pod_delete after-upgrade
    during "Weir's roll-back" roll_back && never_waited || return 1
    until_ok 20 node_label weir-version "$VERSION" &&
        pod after-rollback 10 "vector-add && grep -q /$VERSION/libweir.so /proc/self/mountinfo" &&
        succeeds after-rollback 30 && pod_delete after-rollback
}

# Both once more, with the pods' threads before everything else.
upgrades_apart() {
    local noted PODS_ARE=real-time
    noted=$(containers low high)
    real_time low high > "$W/refused.log" 2>&1 || {
        sed 's/^/# /' "$W/refused.log"
        return 78
    }
    during before before && unrelated && during "Weir's upgrade" upgrade && during "Weir's roll-back" roll_back &&
        never_waited &&
        echo "# With real-time threads 'more than before' is what Weir adds; others also wait for the host's CPUs."
}
