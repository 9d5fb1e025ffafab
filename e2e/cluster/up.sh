#!/bin/bash
# Starts the node and leaves it running, for a look by hand; down.sh ends it. The arguments are
# programs for the test image.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=cluster.sh
. "$here/cluster.sh"
cluster_up "$@"
# shellcheck disable=SC2154
echo "node $NODE is ready; API: https://127.0.0.1:$port_api (token token-admin); logs: $W"
