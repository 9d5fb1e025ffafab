#!/bin/bash
# Renders the chart in the ways that differ and looks at what matters, and that deploy/manifests is what the chart
# says. Without helm (WEIR_SKIP_KUBELET=1 and none on the PATH) it checks that the files are what they claim to be.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
. e2e/tap.sh
chart=charts/weir
dir=$(mktemp -d /tmp/weir-chart-XXXXXX)
trap 'rm -rf "$dir"' EXIT

same_version() {
    grep -qx "appVersion: $(sed -n 's/^VERSION *:= *//p' Makefile)" $chart/Chart.yaml
}
# Writes both programs' configuration out of a rendered ConfigMap.
unpack() { # MANIFEST
    rm -f "$dir"/{agent,plugin}.yaml
    awk -v dir="$dir" '
        /^  (agent|plugin)\.yaml: \|/ { file = dir "/" substr($1, 1, length($1) - 1); printf "" > file; next }
        file && /^    / { print substr($0, 5) >> file; next }
        file && !/^ *$/ { file = "" }' "$1" &&
        test -s "$dir/agent.yaml" -a -s "$dir/plugin.yaml"
}
programs_accept() { # MANIFEST
    unpack "$1" &&
        NODE_NAME=n "$B/bin/weir-device-plugin" --check-config --config "$dir/plugin.yaml" &&
        NODE_NAME=n "$B/bin/weir-agent" --check-config --config "$dir/agent.yaml"
}

program_takes() { # PROGRAM FILE
    NODE_NAME=n "$B/bin/$1" --check-config --config "$2"
}

check "the chart has the version of the programs" same_version
check "the example of the agent's configuration is good" program_takes weir-agent deploy/docs/agent.yaml
check "so is that of the device plugin" program_takes weir-device-plugin deploy/docs/plugin.yaml
check "the schema is JSON" jq -e .properties $chart/values.schema.json
check "the manifests' configuration is good" programs_accept deploy/manifests/weir.yaml
helm=$(type -P helm) || {
    [ "${WEIR_SKIP_KUBELET:-}" != 1 ] || exit $failed
    helm=$(e2e/cluster/build.sh helm)/helm || exit
}
# Nothing of the caller's own.
export HELM_CACHE_HOME=$dir HELM_CONFIG_HOME=$dir HELM_DATA_HOME=$dir
check "the manifests are the chart's" deploy/manifests.sh "$helm" --check

render() { # FILE ARGUMENT...
    local file=$1
    shift
    "$helm" template weir $chart --kube-version 1.30.0 --namespace weir-system "$@" > "$dir/$file"
}
refuses() { # TEXT ARGUMENTS...
    local text=$1
    shift
    ! render refused "$@" 2> "$dir/refusal" && grep -qF -- "$text" "$dir/refusal"
}
document() { # FILE KIND NAME
    awk -v RS='---\n' -v kind="$2" -v name="$3" 'index($0, "\nkind: " kind "\n") && $0 ~ "\n  name: " name "\n"' "$dir/$1"
}
in_document() { # TEXT FILE KIND NAME
    document "${@:2}" | grep -F -- "$1" > /dev/null
}
has() { # FILE TEXT
    grep -qF -- "$2" "$dir/$1"
}
has_not() {
    test -s "$dir/$1" && ! has "$@"
}

checksum() { # ARGUMENTS...
    render checksum "$@" && grep -m 1 checksum/config "$dir/checksum"
}
same_checksum() {
    [ "$(checksum)" = "$(checksum "$@")" ]
}
other_checksum() {
    [ -n "$(checksum "$@")" ] && ! same_checksum "$@"
}

check "lints" "$helm" lint --strict $chart
check "renders" render plain
check "its configuration is good" programs_accept "$dir/plain"
check "renders with everything" render all --set image.registry=r.example.com/x/ --set image.tag=t \
    --set levels.priorityClasses.production=critical --set 'levels.raiseNamespaces={a,b}' \
    --set serviceMonitor.enabled=true,podMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true \
    --set mode=mps --set 'health.ignoredXids={13,31}' --set unregistered.action=kill --set config.agent.scheduling.aging=never \
    --set profiles.batch.agent.policy=wfq --set profiles.batch.agent.scheduling.quantum=20ms \
    --set container.env.A=b --set 'container.mounts[0].hostPath=/h,container.mounts[0].containerPath=/c'
document all ConfigMap weir > "$dir/base"
check "its configuration is good, too" programs_accept "$dir/base"
check "images come from the registry" has all "image: r.example.com/x/weir-agent:t"
check "nobody is privileged" has_not all "privileged: true"
check "which is asked for" has all "runtimeClassName: nvidia"
check "under another name" render named --set fullnameOverride=gpus,prometheusRule.enabled=true,grafanaDashboard.enabled=true
check "alerts know the agents by it" in_document '.*gpus.*' named PrometheusRule gpus
check "so does the dashboard" in_document '.*gpus.*' named ConfigMap gpus-dashboard
check "by it alone" has_not named '.*weir.*'
check "a misspelt value is refused" refuses levles --set levles.guaranteed=high
check "so is a wrong one" refuses mode --set mode=shared
# What the programs would refuse only when they start.
check "nor is an amount of memory that is none" refuses /memoryDefault --set memoryDefault=8GB
check "on one GPU neither" refuses /gpus/0/memoryDefault --set 'gpus[0].index=0,gpus[0].memoryDefault=shares'
check "nor a resource of Kubernetes's own" refuses /resourceName --set resourceName=kubernetes.io/gpu
check "nor an XID that there cannot be" refuses /health/ignoredXids/0 --set 'health.ignoredXids={100001}'
check "nor a variable with no name for one" refuses /container/env --set container.env.1A=x
# The schema knows all keys of both programs: those of the examples, which have all.
examples() {
    local program
    for program in agent plugin; do
        { printf 'config:\n  %s:\n' $program && sed 's/^/    /' deploy/docs/$program.yaml; } > "$dir/values.yaml"
        render example -f "$dir/values.yaml" || return
    done
}
check "every key of the programs' configuration is accepted" examples
# Configuration that no program takes: helm refuses it before a pod is changed.
while read -r program text; do
    echo "$text" > "$dir/bad.yaml"
    program_refuses() {
        ! program_takes "$([ "$program" = agent ] && echo weir-agent || echo weir-device-plugin)" "$dir/bad.yaml" 2> /dev/null
    }
    check "$program: the program refuses $text" program_refuses
    check "$program: helm refuses it, too" refuses "/config/$program" \
        --set-json "config.$program=$text"
done << 'BAD'
agent {"sockett": "/a"}
agent {"socket": "a"}
agent {"policy": "best"}
agent {"scheduling": {"quantum": "1us"}}
agent {"scheduling": {"aging": "soon"}}
agent {"scheduling": {"maxOverhead": 0}}
agent {"metrics": {"address": "localhost"}}
agent {"levels": {"default": 2}}
agent {"levels": {"qos": {"besteffort": "low"}}}
agent {"levels": {"priorityClasses": ["a"]}}
agent {"levels": {"raiseNamespaces": "a"}}
agent {"limits": {"clients": 0}}
agent {"standalone": {"rules": [{"uid": 1}]}}
agent {"standalone": {"rules": [{"cgroup": "/a*b", "level": "low"}]}}
agent {"standalone": {"rules": [{"level": "low", "latencySlo": "1us"}]}}
agent {"compile": {"mode": "cubin"}}
agent {"compile": {"cacheDir": "here"}}
agent {"unregistered": {"action": "warn"}}
agent {"memoryDefault": "8GB"}
agent {"mps": {"check": "never"}}
agent {"gpus": [{"mode": "mps"}]}
agent {"gpus": [{"index": 1, "shares": 10}]}
agent {"logLevel": "loud"}
plugin {"resourceName": "kubernetes.io/gpu"}
plugin {"deviceListStrategy": "cdi"}
plugin {"gpus": [{"index": 0, "shares": 101}]}
plugin {"container": {"mounts": [{"hostPath": "/a"}]}}
plugin {"library": {"hostPath": "libweir.so"}}
BAD
check "two settings for one GPU are refused" refuses "two entries" --set-json 'gpus=[{"index":1,"shares":0},{"index":1,"mode":"mps"}]'
check "a large cache is a number" render large -f <(echo 'compile: {cacheMiB: 1048576}')
check "and no exponent" has large "cacheMiB: 1048576"
# Others are made of it: /run/weir/ would give /run/weir/-agent, which pods see.
check "nor a folder with a slash behind it" refuses /host/runDir --set host.runDir=/run/weir/
check "nor is a second pod on a node" refuses maxSurge --set updateStrategy.rollingUpdate.maxSurge=1
check "with CDI" render cdi --set deviceListStrategy=cdi-cri --set allocation=spread
check "the plugin writes the specification" in_document '{name: cdi, mountPath: /var/run/cdi}' cdi DaemonSet weir
check "and looks for the driver on the host" in_document "nodeRoot: /host" cdi ConfigMap weir
check "unprivileged" has_not cdi "privileged: true"
check "with a good configuration" programs_accept "$dir/cdi"
check "and the specification is taken away" has cdi /node/var/run/cdi/weir.dev-gpu.json
check "another vendor's is not ours" render theirs --set deviceListStrategy=cdi-cri,cdiKind=nvidia.com/gpu
check "so nothing is written" has_not theirs "name: cdi"
check "claims need a new Kubernetes" refuses "needs Kubernetes 1.34" --set dra.enabled=true
check "with one they are there" render dra --kube-version 1.34.0 --set dra.enabled=true,dra.shares=60
check "which the programs take" programs_accept "$dir/dra"
check "with a class" in_document 'device.driver == "gpu.weir.dev"' dra DeviceClass gpu.weir.dev
check "the plugin has a token, too" test "$(grep -c 'name: token, mountPath' "$dir/dra")" = 2
check "for the slices of its own node" in_document "of its own node only" dra ValidatingAdmissionPolicy weir-slices
check "what crashes the scheduler of 1.34 is refused" in_document "use several requests" dra ValidatingAdmissionPolicy weir-claims
check "and no more with 1.35" render dra35 --kube-version 1.35.0 --set dra.enabled=true
check "where it works" has_not dra35 weir-claims
check "agent and plugin know the claims" test "$(grep -c '/var/lib/kubelet/plugins/gpu.weir.dev/claims.json\|stateDir: /var/lib/kubelet/plugins/gpu.weir.dev' "$dir/dra")" = 2
check "and the file is taken away" has dra /node/var/run/cdi/weir.dev-claim.json
check "not another vendor's" render theirs_too --kube-version 1.34.0 --set dra.enabled=true,cdiKind=nvidia.com/gpu
check "which stays" has_not theirs_too nvidia.com-gpu.json
check "no such strategy" refuses deviceListStrategy --set deviceListStrategy=cdi
check "single GPUs have settings of their own" render gpus --set-json \
    'gpus=[{"index":0,"shares":0},{"product":"NVIDIA A*","mode":"mps","policy":"wfq","scheduling":{"quantum":"5ms"}}]'
check "which the programs take" programs_accept "$dir/gpus"
check "shares are the plugin's" grep -qF 'shares: 0' "$dir/plugin.yaml"
check "and policies the agent's" grep -qF 'quantum: 5ms' "$dir/agent.yaml"
check "with MPS another pod has its daemons" in_document "supervisor: true" gpus ConfigMap weir
check "also by the deprecated key" render deprecated --set config.agent.mps.keeper=true
check "which becomes the new one" in_document "supervisor: true" deprecated ConfigMap weir
check "and is accepted" programs_accept "$dir/deprecated"
check "also for a daemon of each level" render levels --set mode=mps-per-level,nvidiaRuntime.enabled=false
check "which has its library from the node" in_document "preload: /usr/local/lib/weir" levels ConfigMap weir
check "by the supervisor" in_document "supervisor: true" levels ConfigMap weir
check "which no upgrade ends" in_document "updateStrategy: {type: OnDelete}" gpus DaemonSet weir-mps
check "unprivileged" has_not gpus "privileged: true"
check "without MPS there is none" has_not plain "name: weir-mps"
check "each profile has its own" render profiles --set profiles.batch.agent.mode=mps,profiles.batch.plugin.mode=mps
check "where it says so" in_document 'weir.dev/profile: "batch"' profiles DaemonSet weir-batch-mps
check "and nowhere else" has_not profiles "name: weir-mps"
check "the agent has the driver, with and without MPS" has plain 'value: "compute,utility"'
check "the plugin only its queries" has plain 'NVIDIA_DRIVER_CAPABILITIES, value: utility'
check "a GPU must be named" refuses gpus --set-json 'gpus=[{"mode":"mps"}]'
check "another policy restarts no pod" same_checksum --set policy=wfq,levels.guaranteed=critical,logLevel=debug,mode=mps
check "another cache does" other_checksum --set compile.cacheMiB=64
check "so does another folder" other_checksum --set host.runDir=/run/other
check "without NVIDIA's runtime" render bare --set nvidiaRuntime.enabled=false
check "they are" has bare "privileged: true"
check "and their configuration is good" programs_accept "$dir/bare"
# Tenants reach the HTTP port, and can use up its connections.
probe() { # FILE
    sed -n '/livenessProbe:/,/readinessProbe:/p' "$dir/$1"
}
probe_says() { # FILE TEXT
    probe "$1" | grep -qF -- "$2"
}
check "liveness is asked over the control socket" probe_says plain \
    'command: [/usr/local/bin/weirctl, --socket, "/run/weir-agent/control.sock", health]'
check "with a timeout" probe_says plain "timeoutSeconds: 5"
check "not over HTTP" bash -c "! grep -qE 'httpGet|port' <<< '$(probe plain)'"
check "a control socket elsewhere" render elsewhere --set config.agent.control.socket=/run/weir-agent/c.sock
check "is asked there" probe_says elsewhere '"/run/weir-agent/c.sock", health]'
check "no pod but the agent's sees it" test "$(grep -c 'name: state, mountPath: /run/weir-agent' "$dir/plain")" = 1
check "only the agent has a token" test "$(grep -c 'name: token, mountPath' "$dir/plain")" = 1
# rules FILE: as one line without comments.
rules() {
    document "$1" ClusterRole weir | sed -n '/^rules:/,$p' | grep -v '^#' | tr -d ' \n'
}
check "which may list and delete pods, tell events and label nodes, and nothing else" test "$(rules plain)" = \
    'rules:-apiGroups:[""]resources:[pods]verbs:[list,watch]-apiGroups:[""]resources:[pods]verbs:[delete]-apiGroups:[""]resources:[events]verbs:[create,patch]-apiGroups:[""]resources:[nodes]verbs:[patch]'
check "of which a policy leaves it its own node's" has plain "kind: ValidatingAdmissionPolicyBinding"
check "without events and labels" render mute --set events.enabled=false --set nodeLabels.enabled=false,admission.validate=false,admission.place=false,admission.wait=false
check "only pods are left, and no policy" test "$(rules mute)$(grep -c AdmissionPolicy "$dir/mute")" = \
    'rules:-apiGroups:[""]resources:[pods]verbs:[list,watch]0'

# Pods that can never run are refused, and pods that fit nowhere wait, where the API server can do it.
check "wrong pods are refused at once" in_document "is no level" plain ValidatingAdmissionPolicy weir-pods
knows_annotations() {
    local name
    for name in $(sed -n '/^levels:/,/^standalone:/s/.*nnotation: *\([^ ]*\).*/\1/p' deploy/docs/agent.yaml); do
        in_document "\"$name\" in variables.changed" plain ValidatingAdmissionPolicy weir-pods || return
    done
}
check "in each annotation that the agent reads" knows_annotations
check "by the annotations' own names" render renamed --set config.agent.levels.annotation=example.org/level
check "all of them" in_document '"example.org/level" in variables.changed' renamed ValidatingAdmissionPolicy weir-pods
check "an old API server places no pods" has_not plain "MutatingAdmissionPolicy"
for version in v1 v1beta1; do
    check "one with $version does" render place --api-versions admissionregistration.k8s.io/$version/MutatingAdmissionPolicy
    check "by that version" in_document "apiVersion: admissionregistration.k8s.io/$version" place MutatingAdmissionPolicy weir-pods
done
check "the agent labels its pod" in_document "name: POD_NAME" plain DaemonSet weir
check "which may patch its own" in_document "verbs: [patch]" plain Role weir
check "and no other" in_document "an agent may change its own pod only" plain ValidatingAdmissionPolicy weir-own-pod
check "not if it is off" render unplaced --set admission.place=false --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy
check "then there is none" has_not unplaced "MutatingAdmissionPolicy"
check "nor does the agent label its pod" has_not unplaced "POD_NAME"
check "without asking there is no NetworkPolicy" has_not plain "kind: NetworkPolicy"
check "nor a quota" has_not plain "kind: ResourceQuota"
check "a NetworkPolicy and a quota" render guarded --set networkPolicy.enabled=true,resourceQuota.enabled=true,resourceQuota.pods=50 \
    --set-json 'networkPolicy.from=[{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]'
check "only metrics are reached" in_document "- {port: metrics, protocol: TCP}" guarded NetworkPolicy weir
check "and by those that were named" in_document "team: monitoring" guarded NetworkPolicy weir
check "and the plugin's" in_document "- {port: plugin-metrics, protocol: TCP}" guarded NetworkPolicy weir
check "of which readiness is asked" in_document "httpGet: {path: /readyz, port: plugin-metrics}" plain DaemonSet weir
check "pods of the class are allowed" in_document 'values: ["system-node-critical"]' guarded ResourceQuota weir
check "as many as were named" in_document 'pods: "50"' guarded ResourceQuota weir
check "pods wait for room on their node" in_document "noRoom: wait" plain ConfigMap weir
check "the agent may delete them" in_document "verbs: [delete]" plain ClusterRole weir
check "and no others" in_document "an agent may delete pending pods that ask for shares only" plain ValidatingAdmissionPolicy weir-waiting
check "not if it is off" render refused --set admission.wait=false
check "then they fail" in_document "noRoom: fail" refused ConfigMap weir
check "nor where no policy can limit it" has_not refused "delete]"
check "a RuntimeClass is set where configured" render classed --set admission.runtimeClassName=nvidia \
    --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy
check "on pods that name none" in_document "has(object.spec.runtimeClassName) ? Object{} : Object{spec: Object.spec{runtimeClassName: 'nvidia'}}" \
    classed MutatingAdmissionPolicy weir-pods

check "where there are labels, none are taken away" has_not plain weir-unlabel
check "without, what agents set goes after the upgrade" in_document 'command: [/usr/local/bin/unlabel-nodes.sh]' mute Job weir-unlabel
check "by an account of its own" in_document "verbs: [list, patch]" mute ClusterRole weir-unlabel

# Nodes with a profile have its configuration, and others none of theirs.
document all ConfigMap weir-batch > "$dir/batch"
check "a profile has its own policy" in_document "policy: wfq" all ConfigMap weir-batch
check "and what all have" in_document "aging: never" all ConfigMap weir-batch
check "which the programs take" programs_accept "$dir/batch"
check "the others keep theirs" in_document "policy: whpf" all ConfigMap weir
check "its pods go to its nodes" in_document "weir.dev/profile: batch" all DaemonSet weir-batch
check "the others do not" in_document "operator: NotIn" all DaemonSet weir
check "with an affinity of the user's" render affine --set profiles.batch.agent.policy=wfq --set-json \
    'affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]},{"matchExpressions":[{"key":"b","operator":"Exists"}]}]}}}'
check "neither, whichever term fits" test "$(document affine DaemonSet weir | grep -c 'operator: NotIn')" = 2
exit $failed
