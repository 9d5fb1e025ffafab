#!/bin/sh
# Waits until a DaemonSet is ready on each node that it is for, with the pod's own credentials.
#
#   await-nodes.sh NAMESPACE NAME
set -eu

account=/var/run/secrets/kubernetes.io/serviceaccount
url="https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/apis/apps/v1/namespaces/$1/daemonsets/$2?pretty=false"

number() { # KEY
    value=$(printf '%s' "$status" | grep -o "\"$1\":[0-9]*") || return 0
    echo "${value#*:}"
}

while :; do
    status=$(curl -sS --fail -m 10 --cacert $account/ca.crt -H "Authorization: Bearer $(cat $account/token)" "$url") || status=
    wanted=$(number desiredNumberScheduled)
    ready=$(number numberReady)
    if [ -n "$(number observedGeneration)" ] && [ "$ready" = "$wanted" ]; then
        echo "await-nodes: $ready nodes are done"
        exit 0
    fi
    sleep 1
done
