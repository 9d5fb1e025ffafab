#!/bin/bash
# manifests/weir.yaml is the chart with its default values, for use without Helm:
#
#   manifests.sh HELM           writes it
#   manifests.sh HELM --check   fails if it differs from the chart
set -euo pipefail
cd "$(dirname "$0")/.."
helm=$1
file=deploy/manifests/weir.yaml

render() {
    echo "# Made from charts/weir by deploy/manifests.sh; not to be edited."
    "$helm" template weir charts/weir --namespace weir-system --kube-version 1.30.0 --no-hooks |
        grep -vE '^# Source: |^ *(app.kubernetes.io/managed-by|helm.sh/chart): '
}

if [ "${2:-}" = --check ]; then
    diff -u "$file" <(render)
else
    render > "$file"
fi
