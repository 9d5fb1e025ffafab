#!/bin/sh
# Waits until a DaemonSet is ready on all its nodes, with the pod's credentials.
#
#   await-nodes.sh NAMESPACE NAME
set -eu
# shellcheck source-path=SCRIPTDIR source=api-server.sh
. "${0%/*}/api-server.sh"

number() { # KEY
    value=$(printf '%s' "$status" | grep -o "\"$1\":[0-9]*") || return 0
    echo "${value#*:}"
}

while :; do
    status=$(api GET "/apis/apps/v1/namespaces/$1/daemonsets/$2?pretty=false") || status=
    wanted=$(number desiredNumberScheduled)
    ready=$(number numberReady)
    if [ -n "$(number observedGeneration)" ] && [ "$ready" = "$wanted" ]; then
        echo "await-nodes: $ready nodes are done"
        exit 0
    fi
    sleep 1
done
