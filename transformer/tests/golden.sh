#!/bin/bash
# Runs weir-transform on each golden/NAME.ptx with the options of its first line, `// options`. The output must be
# golden/NAME.want.ptx, or the error message golden/NAME.err. UPDATE=1 writes these files instead. ptxas, if there
# is one, must accept the output.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
transform=$(realpath "$B")/bin/weir-transform
ptxas=$(realpath "${CUDA_HOME:-build/cuda}")/bin/ptxas
cd transformer/tests/golden || exit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

compare() { # NAME WANT GOT
    if [ -n "${UPDATE:-}" ]; then cp "$3" "$2"; fi
    check "$1" diff -u "$2" "$3"
}

for input in *.ptx; do
    case $input in *.want.ptx) continue ;; esac
    name=${input%.ptx}
    read -ra options < <(sed -n '1s|^// ||p' "$input")
    if "$transform" "${options[@]}" "$input" "$scratch/out" >"$scratch/list" 2>"$scratch/err"; then
        [ ! -s "$scratch/list" ] || cp "$scratch/list" "$scratch/out"
        compare "$name" "$name.want.ptx" "$scratch/out"
        [ ! -s "$scratch/list" ] || continue
        [ -x "$ptxas" ] || continue
        target=$(sed -n 's/^\.target \([a-z0-9_]*\).*/\1/p' "$input")
        check "$name assembles" "$ptxas" -arch="$target" -o /dev/null "$scratch/out"
    else
        compare "$name" "$name.err" "$scratch/err"
    fi
done
exit $failed
