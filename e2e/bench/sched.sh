#!/bin/bash
# Who runs next, and what comes of it: the experiments of FLEP, EffiSha and GLoop, against what one would use instead,
# each figure with its baselines of the same run and a verdict. For a real GPU, as gpu/first-light.sh is; with
# --simulated everything runs with tiny sizes on the simulated one, and times get no verdict.
#
#   sched.sh [BUNDLE.tar.gz | FOLDER] [--only a,b,…] [--seconds S] [--results FILE] [--simulated] [--dry-run]
set -euo pipefail
# shellcheck source=e2e/gpu/unpack.sh
. "$(dirname "$0")/../gpu/unpack.sh"

# Not exec: the trap removes the folder.
python3 "$here/sched.py" --bundle "$root" "${rest[@]}"
