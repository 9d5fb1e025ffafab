#!/bin/bash
# weir-compile without an agent, for all PTX that the build made with nvcc: each kernel in all forms that can
# leave, as PTX and as machine code.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
dir=$(mktemp -d /tmp/weir-compile-XXXXXX)
trap 'rm -rf "$dir"' EXIT

word() { # VALUE BYTES: little endian
    local i byte bytes=
    for ((i = 0; i < $2; i++)); do
        printf -v byte '\\x%02x' $(($1 >> 8 * i & 255))
        bytes+=$byte
    done
    # shellcheck disable=SC2059 # the format is the bytes
    printf "$bytes"
}

request() { # FILE KERNEL SM FORMS
    local name_size=$((${#2} + 1))
    word 0x4c504d43 4; word 1 4; word "$3" 4; word "$4" 4
    word 64 8; word $name_size 8; word $((64 + name_size)) 8; word "$(stat -c %s "$1")" 8; word 0 8; word 0 8
    printf '%s\0' "$2"
    cat "$1"
}

compile() { # OPTION...
    "$B/bin/weir-compile" "$@" 3<"$dir/request" 4<>"$dir/object"
}

image_begins() { # WITH; where the object has an image
    local at size
    read -r at size < <(od -An -tu4 -j24 -N8 "$dir/object")
    [ "$size" -eq 0 ] || [ "$(tail -c +$((at + 1)) "$dir/object" | head -c 4 | tr -d '\177')" = "$1" ]
}

try() { # BEGINNING OPTION...
    local beginning=$1
    shift
    rm -f "$dir/object"
    compile "$@" && [ "$(head -c 4 "$dir/object")" = EWOB ] && image_begins "$beginning"
}

while read -r input; do
    sm=$(sed -n 's/^\.target sm_\([0-9]*\).*/\1/p' "$input") good=0 n=0
    [ "$sm" -gt 75 ] || sm=90
    while read -r kernel; do
        n=$((n + 1))
        request "$input" "$kernel" "$sm" 14 >"$dir/request"
        if try .ver && try ELF --machine-code; then
            good=$((good + 1))
        else
            echo "# $kernel: $(head -c 200 "$dir/object")"
        fi
    done < <(sed -n 's/^\(\.visible \|\.weak \)\?\.entry \([^ (]*\).*/\2/p' "$input")
    check "${input#"$B"/gen/}: $good of $n kernels" [ "$good" = "$n" ]
done < <(find "$B/gen" -name '*.ptx' -not -path '*/reprint/*' | sort)
exit $failed
