#!/bin/sh
# Removes the labels weir.dev/gpu.* from all nodes, with the pod's credentials; after `helm uninstall`.
set -eu
# shellcheck source-path=SCRIPTDIR source=api-server.sh
. "${0%/*}/api-server.sh"

list=$(api GET '/api/v1/nodes?labelSelector=weir.dev/gpu.weir-version&pretty=false' \
    -H 'Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1')
labels=$(printf '%s' "$list" | grep -oE '"weir\.dev/gpu\.[^"]*":' | sort -u | sed 's/$/null/' | tr '\n' ,) || labels=
nodes=$(printf '%s' "$list" | grep -oE '"metadata":\{"name":"[^"]*"' | sed 's/.*:"//; s/"$//') || nodes=
for node in $nodes; do
    api PATCH "/api/v1/nodes/$node" -o /dev/null -H 'Content-Type: application/merge-patch+json' \
        --data "{\"metadata\":{\"labels\":{${labels%,}}}}"
    echo "unlabel-nodes: $node"
done
