#!/bin/bash
# `make help` lists the targets, whatever has been built.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh

listed=$(make --no-print-directory help 2>&1)
lists() {
    grep -q "^  make $1 " <<<"$listed"
}

for target in help all demo test install; do
    check "make help lists $target" lists "$target"
done
exit $failed
