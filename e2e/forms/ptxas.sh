#!/bin/bash
# Every rewritten kernel of the workloads, and of generated ones, is accepted by ptxas for each
# architecture.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

. e2e/tap.sh
CUDA_HOME=${CUDA_HOME:-build/cuda}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for seed in 1 2 3 4 5 6; do
    "$B/tests/test-forms" print $seed >"$tmp/generated-$seed.ptx"
done
for ptx in "$B"/gen/e2e/workloads/*.ptx "$B"/gen/e2e/workloads/{papers,tensor,masks}/*.ptx "$tmp"/generated-*.ptx; do
    name=$(basename "$ptx" .ptx)
    architectures=(75 80 90 100 120)
    [ "$name" != tensor ] || architectures=(90a)
    ! grep -q '^\.target sm_80$' "$ptx" || architectures=(80 90 100 120)
    "$B/bin/weir-transform" -f sliced -f persistent -f resumable "$ptx" "$tmp/out.ptx"
    status=$?
    for sm in "${architectures[@]}"; do
        "$CUDA_HOME/bin/ptxas" -arch=sm_$sm -o /dev/null "$tmp/out.ptx" || status=1
    done
    report $status "$name"
done
exit $failed
