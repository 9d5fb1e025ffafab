#!/bin/sh
# What the simulated driver derives from the toolkit's headers.
#
#   names.sh stubs INCLUDE    C: every function of cuda.h, weak, "not supported"
#   names.sh table INCLUDE    rows of cuGetProcAddress: NAME(base, version, per-thread, symbol)
#   names.sh errors INCLUDE   rows of cuGetErrorName: ERROR(name)
set -eu

names() {
    ${CC:-cc} -E -P -D__CUDA_API_VERSION_INTERNAL -x c "$1/cuda.h" |
        grep -oE '\bcu[A-Z][A-Za-z0-9_]*[[:space:]]*\(' | tr -d '( \t' | sort -u
}

case $1 in
stubs)
    echo '#pragma GCC visibility push(default)'
    names "$2" | sed 's/.*/STUB(&)/'
    ;;
errors)
    sed -nE 's/^[[:space:]]*(CUDA_(SUCCESS|ERROR_[A-Z0-9_]+))[[:space:]]*=.*/ERROR(\1)/p' "$2/cuda.h"
    ;;
table)
    # cudaTypedefs.h says since which version a function has its form; the n-th form of the base name is
    # the n-th spelling: cuX, cuX_v2, ...
    {
        grep -oE 'PFN_cu[A-Za-z0-9]+_v[0-9]+(_ptsz|_ptds)?\)' "$2/cudaTypedefs.h" | tr -d ')' | sort -u
        names "$2"
    } | awk '
    /^PFN_/ {
        match($0, /_v[0-9]+/)
        base = substr($0, 5, RSTART - 5)
        version = substr($0, RSTART + 2, RLENGTH - 2) + 0
        thread = /_pt[sd][sz]$/ ? 1 : 0
        key = base SUBSEP thread
        versions[key] = versions[key] " " version
        next
    }
    {
        thread = /_pt[sd][sz]$/ ? 1 : 0
        base = $0
        sub(/_pt[sd][sz]$/, "", base)
        number = 1
        if (match(base, /_v[0-9]+$/)) {
            number = substr(base, RSTART + 2) + 0
            base = substr(base, 1, RSTART - 1)
        }
        spelling[base, thread, number] = $0
        if (number > most[base, thread])
            most[base, thread] = number
        bases[base, thread] = 1
    }
    END {
        for (key in bases) {
            split(key, part, SUBSEP)
            n = split(versions[key], v, " ")
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
                    t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
                }
            i = 0
            for (number = 1; number <= most[key]; number++)
                if ((part[1], part[2], number) in spelling)
                    printf "NAME(%s, %d, %d, %s)\n", part[1], v[++i], part[2],
                        spelling[part[1], part[2], number]
            if (i != n)
                printf "/* mismatch %s %d: %d spellings, %s */\n", part[1], part[2], i, versions[key]
        }
    }' | sort
    ;;
esac
