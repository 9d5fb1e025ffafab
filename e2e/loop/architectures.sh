#!/bin/bash
# weir/loop.cuh compiles to machine code of every architecture that it is for and the toolkit knows, without a warning.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nvcc=${CUDA_HOME:-build/cuda}/bin/nvcc
architectures=(75 80 86 89 90 90a 100 120)

compiles() { # ARCHITECTURE OPTION...
    local architecture=$1
    shift
    "$nvcc" -cubin -arch="sm_$architecture" -Werror all-warnings -Iruntime-lib/include "${@:--std=c++17}" \
        -o "$tmp/cubin" e2e/loop/every.cu && [ -s "$tmp/cubin" ]
}

known=" $("$nvcc" --list-gpu-arch | sed 's/compute_//' | tr '\n' ' ') "
for architecture in "${architectures[@]}"; do
    if [[ $known == *" ${architecture%a} "* ]]; then
        check "sm_$architecture" compiles "$architecture"
    else
        echo "ok - sm_$architecture # SKIP: the toolkit does not know it"
    fi
done
check "without shared memory for callbacks" compiles 75 -DWEIR_LOOP_SHARED=0
check "with four callbacks in shared memory" compiles 90 -DWEIR_LOOP_SHARED=4
check "as C++20" compiles 90 -std=c++20
exit $failed
