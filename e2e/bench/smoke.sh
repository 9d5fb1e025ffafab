#!/bin/bash
# forms.sh and sched.sh on the simulated GPU: every part runs, and finds what has to be so on any GPU.
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

everything() { # SCRIPT PARTS
	timeout 300 "e2e/bench/$1.sh" "$tmp/node" --simulated --seconds 0.2 --only "${2// /,}" --results "$tmp/$1.md" >"$tmp/out" 2>&1
	local status=$? part
	say $status "$1: every part passes"
	[ $status -eq 0 ] || cat "$tmp/out"
	for part in $2; do
		grep -q "^| $part |" "$tmp/$1.md"
		say $? "$1: part $part has a figure"
	done
}

# e of forms is d again: the simulated GPU is always shared as by MPS.
everything forms "f b c a g t h d"
everything sched "d f k a b c i g e h j l"
[ -s "$tmp/plots/sched-a.svg" ]
say $? "sched: there are plots"
exit $failed
