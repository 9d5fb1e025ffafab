#!/bin/bash
# forms.sh on the simulated GPU: every part runs, and finds what has to be so on any GPU.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

say() { # STATUS WHAT
	if [ "$1" -eq 0 ]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
		failed=1
	fi
}

# Where clients that are other users may read it.
mkdir -p "$tmp/node/lib"
cp -rL "$B/bin" "$B/bench" "$B/simcuda" "$tmp/node"
cp "$B/lib/libweir.so" "$tmp/node/lib"
chmod -R a+rX "$tmp"

# e is d again: the simulated GPU is always shared as by MPS.
parts="f b c a g t h d"
timeout 300 e2e/bench/forms.sh "$tmp/node" --simulated --seconds 0.2 --only "${parts// /,}" --results "$tmp/results" \
	>"$tmp/out" 2>&1
say $? "every part passes"
for part in $parts; do
	grep -q "^| $part |" "$tmp/results"
	say $? "part $part has a figure"
done
[ $failed -eq 0 ] || cat "$tmp/out"
exit $failed
