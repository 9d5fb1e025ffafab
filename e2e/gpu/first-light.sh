#!/bin/bash
# First light on a real GPU: unpacks the bundle, runs every part and prints the figures, each with the
# baselines of the same run and a verdict. Nothing is installed and no setting of the card is touched.
#
#   first-light.sh [BUNDLE.tar.gz] [--only c,d,…] [--seconds S] [--results FILE] [--dry-run]
#
# Without a name the bundle is the one that `make bundle` left in build/, or the one that this script
# lies in. Details go to $OUT where it is set.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bundle=
case "${1-}" in
*.tar.gz)
	bundle=$1
	shift
	;;
esac

folder=
cleanup() {
	[ -z "$folder" ] || rm -rf "$folder"
}
trap cleanup EXIT

if [ -z "$bundle" ] && [ -x "$here/../bin/weir-agent" ]; then
	root=$(cd "$here/.." && pwd)
else
	for made in "$here"/../../build/weir-*.tar.gz; do
		[ -n "$bundle" ] || bundle=$made
	done
	if [ ! -f "$bundle" ]; then
		echo "first-light: no bundle: run 'make bundle', or name one" >&2
		exit 2
	fi
	folder=$(mktemp -d)
	chmod 755 "$folder" # clients may be other users
	tar -xzf "$bundle" -C "$folder"
	root=$(echo "$folder"/weir-*)
	echo "first-light: $(basename "$bundle")"
fi

# Not exec: the trap removes the folder.
python3 "$here/first_light.py" --bundle "$root" "$@"
