#!/bin/bash
# weir/loop.cuh compiles to machine code of every architecture that it is for and the toolkit knows, without a warning:
# every.cu, which calls each function of it.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
headers=runtime-lib/include/weir/loop
nvcc=${CUDA_HOME:-build/cuda}/bin/nvcc
architectures=(75 80 86 89 90 90a 100 120)

compiles() { # ARCHITECTURE OPTION...
    local architecture=$1
    shift
    "$nvcc" -cubin -arch="sm_$architecture" -Werror all-warnings -Iruntime-lib/include "${@:--std=c++17}" \
        -o "$tmp/cubin" e2e/loop/every.cu && [ -s "$tmp/cubin" ]
}

# The names of public functions, one for each overload: methods of weir::loop, and functions of namespace weir that are not
# of weir::detail.
public_functions() {
    sed -n '/^class loop$/,/private:/p' "$headers/state.cuh" | grep -oP '(?<=__device__ )(int|bool|void|uint64_t) \K\w+(?=\()'
    sed -s '/^namespace detail$/,/^} \/\/ namespace detail$/d' "$headers"/{requests,each-block}.cuh |
        grep -oP 'inline __device__ (int|void) \K\w+(?=\(loop &)'
}
used() { # NAME TIMES
    [ "$(grep -oP "(?<!void )\b$1(<\d+>)?\((?!weir::loop_args)" e2e/loop/every.cu | wc -l)" -ge "$2" ] ||
        { echo "# every.cu does not call $1 $2 times"; return 1; }
}
every_function_is_used() {
    local times name
    [ "$(public_functions | wc -l)" -ge 30 ] || return 1
    while read -r times name; do
        used "$name" "$times" || return 1
    done < <(public_functions | sort | uniq -c)
}
check "every.cu calls each public function" every_function_is_used

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
