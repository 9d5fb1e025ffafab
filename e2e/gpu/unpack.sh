# Sourced with what the caller was given: sets $root to a folder of programs, and takes its name, if there
# was one, off the arguments, which are then in "${rest[@]}". It is the folder or the bundle named first,
# else that of which the script is a part, else what `make bundle` left in build/. What was unpacked goes
# at exit.
# shellcheck shell=bash disable=SC2034
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=$(basename "$0" .sh)
bundle='' folder=''
rest=("$@")
if [[ "${1-}" == *.tar.gz || -d "${1-}" ]]; then
	bundle=$1
	rest=("${@:2}")
fi

cleanup() {
	[ -z "$folder" ] || rm -rf "$folder"
}
trap cleanup EXIT

if [ -d "$bundle" ]; then
	root=$(cd "$bundle" && pwd)
elif [ -z "$bundle" ] && [ -x "$here/../bin/weir-agent" ]; then
	root=$(cd "$here/.." && pwd)
else
	for made in "$here"/../../build/weir-*.tar.gz; do
		[ -n "$bundle" ] || bundle=$made
	done
	if [ ! -f "$bundle" ]; then
		echo "$name: no bundle: run 'make bundle', or name one" >&2
		exit 2
	fi
	folder=$(mktemp -d)
	chmod 755 "$folder" # clients may be other users
	tar -xzf "$bundle" -C "$folder"
	root=$(echo "$folder"/weir-*)
	echo "$name: $(basename "$bundle")"
fi
