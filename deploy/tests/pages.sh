#!/bin/bash
# The commands, manifests, configurations and expressions in the operators' pages; pages.py says how each is checked.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
helm=$(type -P helm || { [ -n "${WEIR_SKIP_KUBELET:-}" ] || e2e/cluster/build.sh helm; })
[ ! -d "$helm" ] || helm=$helm/helm
if [ ! -x "$helm" ]; then
    echo "ok - operators' pages # SKIP no helm here"
    exit 0
fi
PROMTOOL=$(type -P promtool || echo "${XDG_CACHE_HOME:-$HOME/.cache}/weir/promtool")
[ -x "$PROMTOOL" ] || PROMTOOL=
export B=${B:-build} PROMTOOL
exec python3 deploy/tests/pages.py "$helm" README.md charts/weir/README.md deploy/README.md deploy/docs/*.md
