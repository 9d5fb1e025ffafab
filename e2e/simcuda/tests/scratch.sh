# Sourced in the repository's root by tests of programs on the simulated GPU: a scratch folder $tmp with a GPU of its
# own. When something fails, the end of $tmp/out is shown.
# shellcheck shell=bash disable=SC2034
. e2e/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/sim"
touch "$tmp/out"
report_log=$tmp/out
export WEIR_SIM_DIR=$tmp/sim LD_LIBRARY_PATH=$PWD/$B/simcuda
