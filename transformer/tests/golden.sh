#!/bin/bash
# Runs weir-transform on each golden/NAME.ptx with the options of its first line, `// options`. The output must be
# golden/NAME.want.ptx, or the error message golden/NAME.err. UPDATE=1 writes these files instead. ptxas, if there
# is one, must accept the output.
set -uo pipefail
cd "$(dirname "$0")/golden" || exit
top=$(cd ../../.. && pwd)
transform=$top/${B:-build}/bin/weir-transform
ptxas=${CUDA_HOME:-build/cuda}/bin/ptxas
case $ptxas in /*) ;; *) ptxas=$top/$ptxas ;; esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

report() { # GOOD? WHAT
    if [ "$1" -eq 0 ]; then echo "ok - $2"; else echo "not ok - $2"; status=1; fi
}

compare() { # NAME WANT GOT
    if [ -n "${UPDATE:-}" ]; then cp "$3" "$2"; fi
    diff -u "$2" "$3"
    report $? "$1"
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
        "$ptxas" -arch="$target" -o /dev/null "$scratch/out"
        report $? "$name assembles"
    else
        compare "$name" "$name.err" "$scratch/err"
    fi
done
exit $status
