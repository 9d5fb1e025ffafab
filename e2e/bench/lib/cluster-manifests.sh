#!/bin/bash
# The chart's manifests as the cluster experiments install them, made by Helm: as JSON lists, which need no YAML reader.
#
#   cluster-manifests.sh FOLDER      gpu-install.json, gpu-upgrade.json, gpu-mps.json, gpu-mps-upgrade.json, simulated-….json
set -euo pipefail
cd "$(dirname "$0")/../../.."
to=$1
W=/var/lib/weir-cluster
mkdir -p "$to"
helm=$(e2e/cluster/build.sh helm)/helm
values=$(mktemp)
trap 'rm -f "$values"' EXIT

common() {
    cat << Y
image: {pullPolicy: Never}
host: {libraryDir: $W/node/lib/weir, runDir: $W/tmpfs/run/weir, cacheDir: $W/node/cache/weir, mountPropagation: None}
levels: {raiseNamespaces: [default]}
Y
}

# Under NVIDIA's own runtime there would be no privileges; such a machine has none.
gpu() {
    common
    cat << Y
nvidiaRuntime: {enabled: false}
config:
  plugin: {driver: {mount: always, libraries: /usr/local/nvidia/lib64}}
Y
}

simulated() {
    common
    cat << Y
nvidiaRuntime: {className: ""}
driver: {nvml: $W/host/driver/libnvidia-ml.so.1}
container:
  mounts:
  - {hostPath: $W/tmpfs/sim, containerPath: /dev/weir-sim, readOnly: false}
  env: {WEIR_SIM_DIR: /dev/weir-sim}
config:
  agent: {mps: {program: $W/host/driver/nvidia-cuda-mps-control}}
  plugin: {driver: {mount: always, libraries: $W/host/driver}}
extraEnv: [{name: WEIR_SIM_DIR, value: /dev/weir-sim}]
extraVolumes:
- {name: sim, hostPath: {path: $W/tmpfs/sim}}
- {name: driver, hostPath: {path: $W/host/driver}}
extraVolumeMounts:
- {name: sim, mountPath: /dev/weir-sim}
- {name: driver, mountPath: $W/host/driver, readOnly: true}
Y
}

render() { # FILE ARGUMENT...
    local file=$1
    shift
    "$helm" template weir charts/weir --namespace weir-system --kube-version 1.34.0 -f "$values" "$@" |
        python3 -c 'import json, sys, yaml
print(json.dumps([item for item in yaml.safe_load_all(sys.stdin) if item]))' > "$to/$file.json"
}

for kind in gpu simulated; do
    "$kind" > "$values"
    render "$kind-install"
    render "$kind-upgrade" --set image.tag=next --set policy=wfq
    # Another image, so that both programs start with it.
    render "$kind-mps" --set mode=mps --set image.tag=next
    render "$kind-mps-upgrade" --set mode=mps
done
