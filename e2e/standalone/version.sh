#!/bin/bash
# Each program says its name and version.
set -u
failed=0
for program in weir-agent weir-compile weir-device-plugin weir-sim weir-transform weirctl; do
    if said=$("$B/bin/$program" --version) && [[ $said =~ ^$program\ [0-9]+\.[0-9]+\.[0-9]+ ]]; then
        echo "ok - $said"
    else
        echo "not ok - $program --version: $said"
        failed=1
    fi
done
exit "$failed"
