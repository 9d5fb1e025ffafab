#!/bin/bash
# What kernels cost in the forms that can leave, and how soon they leave: every figure that was promised,
# each with its baselines of the same run and a verdict. For a real GPU, as gpu/first-light.sh is; with
# --simulated everything runs with tiny sizes on the simulated one, and times get no verdict.
#
#   forms.sh [BUNDLE.tar.gz | FOLDER] [--only a,b,…] [--seconds S] [--results FILE] [--simulated] [--dry-run]
set -euo pipefail
# shellcheck source=e2e/gpu/unpack.sh
. "$(dirname "$0")/../gpu/unpack.sh"

# Not exec: the trap removes the folder.
python3 "$here/forms.py" --bundle "$root" "${rest[@]}"
