#!/bin/bash
# Each program prints its name and version.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh

prints_version() { # PROGRAM
    [[ $("$B/bin/$1" --version) =~ ^$1\ [0-9]+\.[0-9]+\.[0-9]+ ]]
}

for program in weir-agent weir-compile weir-device-plugin weir-sim weir-transform weirctl; do
    check "$program --version" prints_version "$program"
done
exit $failed
