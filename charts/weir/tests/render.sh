#!/bin/bash
# Renders the chart in the ways that differ and looks at what matters. Without helm it checks that the files
# are what they claim to be.
set -u
cd "$(dirname "$0")/../../.." || exit
chart=charts/weir
B=${B:-build}
dir=$(mktemp -d /tmp/weir-chart-XXXXXX)
trap 'rm -rf "$dir"' EXIT
status=0

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" > "$dir/out" 2>&1; then
        echo "ok - $what"
    else
        echo "not ok - $what"
        sed 's/^/# /' "$dir/out" | head -20
        status=1
    fi
}
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
        "$B/bin/weir-device-plugin" --check-config --config "$dir/plugin.yaml" &&
        NODE_NAME=n "$B/bin/weir-agent" --check-config --config "$dir/agent.yaml"
}

check "the chart has the version of the programs" same_version
check "the schema is JSON" jq -e .properties $chart/values.schema.json
check "the manifests' configuration is good" programs_accept deploy/manifests/configmap.yaml
command -v helm > /dev/null || exit $status

render() { # FILE ARGUMENT...
    local file=$1
    shift
    helm template weir $chart --kube-version 1.30.0 --namespace weir-system "$@" > "$dir/$file"
}
refuses() { # TEXT ARGUMENTS...
    local text=$1
    shift
    ! render refused "$@" 2> "$dir/refusal" && grep -qF -- "$text" "$dir/refusal"
}
has() { # FILE TEXT
    grep -qF -- "$2" "$dir/$1"
}
has_not() {
    test -s "$dir/$1" && ! has "$@"
}

check "lints" helm lint --strict $chart
check "renders" render plain
check "its configuration is good" programs_accept "$dir/plain"
check "renders with everything" render all --set image.registry=r.example.com/x/ --set image.tag=t \
    --set levels.priorityClasses.production=critical --set 'levels.raiseNamespaces={a,b}' \
    --set podMonitor.enabled=true --set nvidiaRuntime.enabled=true --set mode=mps --set 'ignoredXids={13,31}' \
    --set container.env.A=b --set 'container.mounts[0].hostPath=/h,container.mounts[0].containerPath=/c'
check "its configuration is good, too" programs_accept "$dir/all"
check "images come from the registry" has all "image: r.example.com/x/weir-agent:t"
check "nobody is privileged under NVIDIA's runtime" has_not all "privileged: true"
check "which is asked for" has all "runtimeClassName: nvidia"
check "a misspelt value is refused" refuses levles --set levles.guaranteed=high
check "so is a wrong one" refuses mode --set mode=shared
exit $status
