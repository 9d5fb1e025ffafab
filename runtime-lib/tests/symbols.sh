#!/bin/sh
# libweir exports the complete driver API of the installed cuda.h, and nothing else.
set -eu
want=$B/gen/driver-symbols.txt
have=$B/gen/libweir-exports.txt
nm -D --defined-only "$B/lib/libweir.so" | awk '{ print $3 }' | LC_ALL=C sort >"$have"

if diff "$want" "$have" >"$have.diff"; then
    echo "ok - libweir exports the $(wc -l <"$want") functions of the driver"
else
    cat "$have.diff"
    echo "not ok - libweir exports the driver's functions and no others"
    exit 1
fi
# The list itself: each function that the header declares, read in another way than it was made.
missing=$(grep -oE '\bCUDAAPI +cu[A-Z][A-Za-z0-9_]*' "${CUDA_HOME:-build/cuda}/include/cuda.h" |
    awk '{ print $2 }' | sort -u | while read -r name; do grep -qx "$name" "$have" || grep -qx "${name}_v2" "$have" || echo "$name"; done)
if [ -z "$missing" ]; then
    echo "ok - no declaration of cuda.h is missing"
else
    echo "missing: $missing"
    echo "not ok - no declaration of cuda.h is missing"
    exit 1
fi

want=$B/gen/nvml-symbols.txt
have=$B/gen/libweir-nvml-exports.txt
nm -D --defined-only "$B/lib/libweir-nvml.so" | awk '{ print $3 }' | LC_ALL=C sort >"$have"
if diff "$want" "$have" >"$have.diff" && [ "$(grep -cE 'DECLDIR +nvml' "${CUDA_HOME:-build/cuda}/include/nvml.h")" -le "$(wc -l <"$have")" ]; then
    echo "ok - libweir-nvml exports the $(wc -l <"$want") functions of NVML"
else
    cat "$have.diff"
    echo "not ok - libweir-nvml exports NVML's functions and no others"
    exit 1
fi

for library in libweir libweir-nvml; do
    if objdump -p "$B/lib/$library.so" | grep -E 'NEEDED' | grep -vE 'libc\.so|ld-linux'; then
        echo "not ok - $library depends on libc only"
        exit 1
    fi
    echo "ok - $library depends on libc only"

    young=$(objdump -T "$B/lib/$library.so" | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | awk -F. '$2 > 17')
    if [ -n "$young" ]; then
        objdump -T "$B/lib/$library.so" | grep -E "$(echo "$young" | paste -sd'|')"
        echo "not ok - glibc 2.17 is enough for $library"
        exit 1
    fi
    echo "ok - glibc 2.17 is enough for $library"
done
