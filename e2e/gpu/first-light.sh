#!/bin/bash
# First light on a real GPU: unpacks the bundle, runs every part and prints the figures, each with the
# baselines of the same run and a verdict. Nothing is installed and no setting of the card is touched.
#
#   first-light.sh [BUNDLE.tar.gz] [--only c,d,…] [--seconds S] [--results FILE] [--dry-run]
#
# Without a name the bundle is the one that `make bundle` left in build/, or the one that this script
# lies in. Details go to $OUT where it is set.
set -euo pipefail
# shellcheck source=e2e/gpu/unpack.sh
. "$(dirname "$0")/unpack.sh"

# Not exec: the trap removes the folder.
python3 "$here/first_light.py" --bundle "$root" "${rest[@]}"
