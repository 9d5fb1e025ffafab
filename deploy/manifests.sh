#!/bin/bash
# manifests/weir.yaml is the chart with its own values, for who has no Helm:
#
#   manifests.sh HELM           writes it
#   manifests.sh HELM --check   fails where it is not what the chart says
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
