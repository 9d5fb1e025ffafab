# For tests of programs on the simulated GPU: sourced in the repository's root, gives a scratch folder $tmp with a
# GPU of its own, and say, which shows the end of $tmp/out where something fails.
# shellcheck shell=bash disable=SC2034
B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/sim"
touch "$tmp/out"
export WEIR_SIM_DIR=$tmp/sim LD_LIBRARY_PATH=$PWD/$B/simcuda
failed=0 # for the test to end with

say() { # STATUS WHAT
	if [ "$1" -eq 0 ]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
		tail -n 3 "$tmp/out"
		failed=1
	fi
}
