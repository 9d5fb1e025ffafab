#!/bin/bash
# Takes away everything that up.sh or a test run started, also after a crash.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=cluster.sh
. "$here/cluster.sh"
cluster_down
