#!/bin/bash
# On a machine with two GPUs or more: a client above preempts on its own GPU alone, and a program that uses two
# GPUs at a time gives the same bits under Weir, held again and again. About 45 s.
#
#   two.sh [BUNDLE.tar.gz] [--simulated]
#
# --simulated: the first half, on two simulated GPUs. Details go to $OUT where it is set.
set -euo pipefail
# shellcheck source=e2e/gpu/unpack.sh
. "$(dirname "$0")/unpack.sh"

# Not exec: the trap removes the folder.
python3 "$here/two.py" --bundle "$root" "${rest[@]}"
