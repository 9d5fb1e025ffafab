#!/bin/bash
# libweir exports the complete driver API of the installed cuda.h, ioctl, weir.h and loop-link.h, libweir-nvml NVML's, libweir-mps
# ioctl, and nothing else. They need no library but libc, and no glibc younger than 2.17.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
include=${CUDA_HOME:-build/cuda}/include

exports() { # LIBRARY LIST [NAME...]: those of the list, and the names
    nm -D --defined-only "$B/lib/$1.so" | awk '{ print $3 }' | LC_ALL=C sort >"$B/gen/$1-exports.txt"
    printf '%s\n' "${@:3}" | cat - "$2" | sed '/^$/d' | LC_ALL=C sort | diff - "$B/gen/$1-exports.txt"
}
# The header's declarations, found in another way than the list was made.
none_missing() {
    local name missing=0
    while read -r name; do
        grep -qxE "${name}(_v2)?" "$B/gen/libweir-exports.txt" || { echo "missing: $name"; missing=1; }
    done < <(grep -oE '\bCUDAAPI +cu[A-Z][A-Za-z0-9_]*' "$include/cuda.h" | awk '{ print $2 }' | sort -u)
    return $missing
}
has_all_of_nvml() {
    [ "$(grep -cE 'DECLDIR +nvml' "$include/nvml.h")" -le "$(wc -l <"$B/gen/libweir-nvml-exports.txt")" ]
}
needs_libc_only() { # LIBRARY
    ! objdump -p "$B/lib/$1.so" | grep NEEDED | grep -vE 'libc\.so|ld-linux'
}
glibc_is_old() { # LIBRARY
    local young
    young=$(objdump -T "$B/lib/$1.so" | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | awk -F. '$2 > 17')
    echo "$young"
    [ -z "$young" ]
}

check "libweir exports the functions of the driver, ioctl, and weir.h" exports libweir "$B/gen/driver-symbols.txt" ioctl weir_available weir_expect weir_set_priority \
    weir_loops_begin weir_loops_end weir_loops_gate weir_loops_words weir_loops_left
check "no declaration of cuda.h is missing" none_missing
check "libweir-nvml exports the functions of NVML and no others" exports libweir-nvml "$B/gen/nvml-symbols.txt"
check "no declaration of nvml.h is missing" has_all_of_nvml
check "libweir-mps exports ioctl alone" exports libweir-mps /dev/null ioctl
for library in libweir libweir-nvml libweir-mps; do
    check "$library needs libc only" needs_libc_only $library
    check "glibc 2.17 is enough for $library" glibc_is_old $library
done
exit $failed
