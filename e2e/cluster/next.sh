#!/bin/bash
# next.sh NAME: builds what is shipped once more, as version NAME, in $B/NAME. Only sources that have the version are
# compiled again; all other objects are those of $B.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
there=$B/$1

rm -rf "$there"
mkdir -p "$there"
cp -rp "$B/gen" "$B/obj" "$there"
grep -rlF --include='*.o' "$VERSION" "$there/obj" | xargs rm
make -s B="$there" VERSION="$1" shipped
