#!/bin/bash
# The quick start page as it reads, on a cluster that `kubeadm init` has just made, with a simulated GPU: its commands one
# after another, and what they print. Before the page's uninstall come mistakes that a new operator makes, with what
# kubectl and `kubectl weir` say of them, and the other pages' commands for a cluster. The names of commands are those of
# pages and lines. WEIR_SKIP_KUBELET=1 leaves it out; KEEP=1 leaves the node running at the end, until somebody ends this.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD/e2e/cluster
page=deploy/docs/quick-start.md
CGROUP=weir-kubeadm
W=${W:-$PWD/${B:-build}/quick-start}
APART="--pid --fork --kill-child --mount-proc"
# shellcheck source-path=SCRIPTDIR source=../cluster.sh
. "$here/cluster.sh"
# shellcheck source-path=SCRIPTDIR source=../kubeadm.sh
. "$here/kubeadm.sh"
failed=0

# operator FILE: runs it in an operator's shell, which keeps what was exported before.
operator() {
    bash -eo pipefail -c 'if [ -f "$2" ]; then . "$2"; fi; . "$1"; export -p > "$2"' operator "$1" "$W/exported" 9>&- < /dev/null
}

# A step that fails ends the test: the next ones build on it.
step() {
    local began=$SECONDS name
    name=$(basename "$1" .sh)
    operator "$1" > "$W/said" 2>&1 || {
        echo "not ok - quick start: commands $name"
        sed 's/^/# /' "$W/said" | tail -n 20
        describe
        exit 1
    }
    echo "ok - quick start: commands $name ($((SECONDS - began)) s)"
}

# other_page PAGE: its commands for a cluster.
other_page() {
    local file
    python3 deploy/tests/pages.py --cluster "$W/pages" "deploy/docs/$1.md" "NODE=$NODE" NAMESPACE=default POD=server || exit 1
    for file in "$W/pages/$1".md-*; do step "$file"; done
}

shows() {
    local name problem
    name=$(basename "$1" .output)
    problem=$(python3 deploy/tests/pages.py --compare "$1" "$W/said" 2>&1) && echo "ok - quick start: output $name" && return
    echo "not ok - quick start: output $name"
    echo "# $problem"
    sed 's/^/# /' "$W/said" | tail -n 20
    failed=1
}

describe() {
    export KUBECONFIG=$CLUSTER_CONFIG
    {
        kubectl get pods -A -o wide
        kubectl get events -A --sort-by=.lastTimestamp | tail -n 10
        kubectl -n weir-system logs ds/weir --all-containers --tail=5
    } 2>&1 | cut -c1-300 | sed 's/^/# /'
}

# asks NAME SHARES [ANNOTATION]: a pod like those of the page.
asks() {
    cat << END
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {${3:-}}}
spec:
  runtimeClassName: ${class:-nvidia}
  containers:
  - {name: main, image: "weir-example:$VERSION", imagePullPolicy: Never, command: [batch], resources: {limits: {weir.dev/gpu-share: $2}}}
END
}

# reads WORDS COMMAND...: what the command prints has the words.
reads() {
    local words=$1
    shift
    "$@" > "$W/said" 2>&1
    grep -qF -- "$words" "$W/said"
}

apply_says() { # WORDS NAME SHARES [ANNOTATION]
    local words=$1
    shift
    asks "$@" > "$W/mistake.yaml"
    reads "$words" kubectl apply -f "$W/mistake.yaml"
}

explain_says() { # WORDS POD
    until_ok 20 reads "$1" kubectl weir explain "$2"
}

# holds WHAT COMMAND...: the command succeeds; otherwise the last output is shown.
holds() {
    local what=$1
    shift
    "$@" && echo "ok - quick start: $what" && return
    echo "not ok - quick start: $what"
    sed 's/^/# /' "$W/said"
    failed=1
}

# A pod that was created is deleted again.
explained_after() { # WORDS NAME SHARES [ANNOTATION]
    apply_says created "${@:2}" && explain_says "$1" "$2" || return 1
    kubectl delete pod "$2" --now > /dev/null
}

# A pod on a node that has no agent.
elsewhere() {
    kubectl create -f - << END > /dev/null && asks far 10 | sed 's/^spec:/&\n  nodeName: elsewhere/' | kubectl apply -f - > /dev/null &&
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}}
END
        reads 'no agent runs on elsewhere, the node of this pod' kubectl weir explain far || return 1
    kubectl delete pod far --force --grace-period=0 > /dev/null 2>&1
    kubectl delete node elsewhere > /dev/null
}

mistakes() {
    export KUBECONFIG=$CLUSTER_CONFIG
    holds "a misspelt level is refused, with the ones that there are" \
        apply_says "weir.dev/priority: 'High' is no level: expected low, normal, high or critical" odd 10 'weir.dev/priority: High'
    holds "so is a misspelt annotation" apply_says "weir.dev/prio: no annotation of Weir: expected" odd 10 'weir.dev/prio: high'
    holds "so are 150 shares" apply_says 'up to 99 (a part of one GPU) or for a multiple of 100' odd 150
    class=nvidiaa holds "so is a RuntimeClass that is not there" apply_says 'RuntimeClass "nvidiaa" not found' odd 10
    holds "a level that the namespace may not raise has a reason" \
        explained_after "'high' refused: the pod has level low (QoS class BestEffort)" raised 10 'weir.dev/priority: high'
    holds "a pod without room has a reason, and what is free" \
        explained_after 'this node has free shares by GPU: 40; the largest part that fits: 40' large 80
    holds "so has one that wants more GPUs than there are" explained_after 'asks for 2 whole GPUs' huge 200
    holds "a pod that is not there" reads '"nowhere" not found' kubectl weir explain nowhere
    holds "kubectl weir finds the node, and says if no agent is there" elsewhere
    holds "kubectl weir asks each node for other commands" reads "$NODE:" kubectl weir status
}

never_restarted() {
    [ "$(kubectl get pods server batch -o jsonpath='{.items[*].status.containerStatuses[0].restartCount}')" = "0 0" ]
}

# What the page promises of the uninstall.
left() {
    export KUBECONFIG=$CLUSTER_CONFIG
    find /usr/local/lib/weir /run/weir /run/weir-agent /run/weir-mps /var/cache/weir 2> /dev/null
    find "$PLUGINS" -name 'weir*'
    kubectl get all,configmaps,secrets -n weir-system -o name | grep -v kube-root-ca.crt
    kubectl get clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings -o name | grep weir
    kubectl get node "$NODE" -o jsonpath='{.metadata.labels}' | grep -o 'weir.dev/gpu[a-z.-]*'
}

nothing_left() {
    [ -z "$(left)" ]
}

cluster_or_skip "quick start"
[ "$B" = build ] || {
    echo "ok - quick start # SKIP because the page's commands use build, not $B"
    exit 0
}
helm=$("$here/build.sh" helm)/helm || die "cannot build helm"
operator=$("$here/build.sh" operator) || die "cannot build kubeadm"
cluster_apart "$0" "$@"
cluster_trap
# The node's processes end with this one.
[ -z "${KEEP:-}" ] || trap 'echo "# the node runs until this test is ended: nsenter --all --target PID"; sleep infinity' EXIT
VERSION=${VERSION:-$(sed -n 's/^VERSION *:= *//p' Makefile)}
kube=$KUBE
began=$SECONDS
machine_up
kubeadm_up
echo "ok - quick start: kubeadm init makes a cluster of one node ($((SECONDS - began)) s)"

# The page's make is a run of its own.
unset MAKEFLAGS MAKELEVEL MFLAGS
mkdir "$W"/{steps,pages}
python3 deploy/tests/pages.py --steps "$W/steps" $page kubeadm simulated || exit 1
for file in "$W"/steps/*; do
    case $file in
    *.output) shows "$file" ;;
    *)
        case $(cat "$file") in
        *'delete pod server'*)
            mistakes
            for other in install slow-pod faq profiles choosing upgrade; do other_page $other; done
            holds "upgrade and rollback restart no container of a pod" never_restarted
            ;;
        *'helm uninstall'*) other_page migration ;;
        esac
        step "$file"
        ;;
    esac
done
until_ok 30 nothing_left || {
    echo "not ok - quick start: uninstall leaves nothing"
    left | sed 's/^/# left: /'
    exit 1
}
echo "ok - quick start: uninstall leaves nothing"
exit $failed
