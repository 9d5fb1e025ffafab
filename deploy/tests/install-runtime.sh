#!/bin/bash
# What install-runtime.sh leaves on a node, and what it refuses.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
dir=$(mktemp -d /tmp/weir-install-XXXXXX)
trap 'rm -rf "$dir"' EXIT

install_runtime() {
    deploy/install-runtime.sh "$@"
}
refuses() { # MESSAGE ARGUMENT...
    local message=$1
    shift
    ! install_runtime "$@" 2> "$dir/err" && grep -qF "$message" "$dir/err"
}
same_file() {
    [ "$(stat -c %i "$1")" = "$2" ]
}

# Any library does.
echo 'int weir_test_library;' | ${CC:-gcc} -shared -fPIC -x c - -o "$dir/library.so" || exit 1
cp "$dir/library.so" "$dir/libweir-nvml.so"
cp "$dir/library.so" "$dir/libweir-mps.so"
host=$dir/host

check "installs into a folder that is not there" install_runtime "$dir/library.so" 1.0 "$host" /on/the/node
check "copies the library" cmp "$dir/library.so" "$host/1.0/libweir.so"
check "and the one for NVML" cmp "$dir/library.so" "$host/1.0/libweir-nvml.so"
check "and the one for MPS servers" cmp "$dir/library.so" "$host/1.0/libweir-mps.so"
names_both() {
    diff <(printf '%s\n' /on/the/node/1.0/libweir.so /on/the/node/1.0/libweir-nvml.so) "$host/1.0/ld.so.preload"
}
check "names them as containers see them" names_both
check "everybody can read it" test "$(stat -c %a "$host"/1.0/libweir{,-nvml,-mps}.so "$host/1.0" | tr '\n' ' ')" = "644 644 644 755 "

inode=$(stat -c %i "$host/1.0/libweir.so")
check "again" install_runtime "$dir/library.so" 1.0 "$host" /on/the/node
check "leaves what is there alone" same_file "$host/1.0/libweir.so" "$inode"
check "another version beside it" install_runtime "$dir/library.so" 1.1 "$host"
check "keeps the old one" cmp "$dir/library.so" "$host/1.0/libweir.so"
check "leaves nothing else" test "$(find "$host" -type f | wc -l)" = 8

exec 3< "$host/1.0/libweir.so"
echo 'int weir_other_library;' | ${CC:-gcc} -shared -fPIC -x c - -o "$dir/other.so" || exit 1
check "replaces a library of the same version" install_runtime "$dir/other.so" 1.0 "$host"
check "whoever had it keeps it" cmp "$dir/library.so" /dev/fd/3

echo garbage > "$dir/garbage.so"
check "refuses what cannot be preloaded" refuses "cannot be preloaded" "$dir/garbage.so" 2.0 "$host"
check "refuses a library that is not there" refuses "cannot read" "$dir/none.so" 2.0 "$host"
check "refuses a version that is a path" refuses "not a version" "$dir/library.so" ../x "$host"
check "refuses a folder it cannot make" refuses "cannot make" "$dir/library.so" 2.0 "$dir/library.so/x"
check "left nothing of these" test ! -e "$host/2.0"
exit $failed
