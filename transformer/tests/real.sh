#!/bin/bash
# For all PTX that the build made with nvcc: without options weir-transform keeps it byte for byte. With --reprint
# the output is a fixed point, and ptxas accepts it. (e2e/forms/ptxas.sh assembles the forms.)
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
transform=$B/bin/weir-transform
ptxas=${CUDA_HOME:-build/cuda}/bin/ptxas
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

assemble() { # FILE
    local own sm
    own=$(sed -n 's/^\.target sm_\([0-9]*a\?\).*/\1/p' "$1")
    for sm in 75 80 90 100 120; do
        # sm_90a is for no later GPU.
        [[ $own == *a ]] && echo "$own" && break
        [ "$sm" -lt "$own" ] || echo "$sm"
    done | xargs -P 2 -I{} "$ptxas" -arch=sm_{} -o /dev/null "$1" 2>"$scratch/log" || { cat "$scratch/log"; return 1; }
}

while read -r input; do
    name=${input#"$B"/gen/}
    "$transform" "$input" | cmp - "$input"
    report $? "$name is kept"
    "$transform" --reprint "$input" "$scratch/new.ptx" &&
        "$transform" --reprint "$scratch/new.ptx" | cmp - "$scratch/new.ptx" && assemble "$scratch/new.ptx"
    report $? "$name is printed"
done < <(find "$B/gen" -name '*.ptx' -not -path '*/reprint/*' | sort)
exit $failed
