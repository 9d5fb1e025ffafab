#!/bin/bash
# The programs for arm64 start, and the libraries export and need what they should.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
B=build-arm64
export B
. e2e/tap.sh

starts() { # PROGRAM
    qemu-aarch64-static -L build/arm64-root "$B/bin/$1" --help
}

for program in weir-agent weir-compile weir-mps weir-selftest weirctl weir-device-plugin; do
    check "$program starts" starts $program
done
runtime-lib/tests/symbols.sh || failed=1
exit $failed
