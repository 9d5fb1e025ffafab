#!/bin/sh
# Puts libweir.so and libweir-nvml.so on a node, from where containers mount them, and libweir-mps.so for MPS servers:
#
#   DIR/VERSION/libweir.so, libweir-nvml.so, libweir-mps.so
#                                never change: running pods have mapped them, and a container that restarts
#                                gets the same mounts again
#   DIR/VERSION/ld.so.preload    has the libraries' paths inside containers
#
# Each file is renamed into place, ld.so.preload last, so that no process sees a part of it. Older versions stay. The
# script may run again, and several times at once.
#
#   install-runtime.sh LIBRARY VERSION DIR [HOST_DIR]
#
# DIR is the node's folder in this container, HOST_DIR (default: DIR) its path on the node.
set -eu

die() {
    echo "install-runtime: $*" >&2
    exit 1
}

[ $# -ge 3 ] || die "usage: install-runtime.sh LIBRARY VERSION DIR [HOST_DIR]"
library=$1 version=$2 dir=$3 host_dir=${4:-$3}
nvml=${library%/*}/libweir-nvml.so
mps=${library%/*}/libweir-mps.so

case $version in
'' | *[!0-9A-Za-z.+-]* | .*) die "not a version: '$version'" ;;
esac

# The loader only warns about a library that it cannot preload. Fail here instead of in pods.
for file in "$library" "$nvml" "$mps"; do
    [ -r "$file" ] || die "cannot read $file"
    complaint=$(LD_PRELOAD="$file" /bin/true 2>&1) || die "$file breaks programs: $complaint"
    [ -z "$complaint" ] || die "$file cannot be preloaded: $complaint"
done

target=$dir/$version
mkdir -p "$target" || die "cannot make $target; is $host_dir writable on this node?"
chmod 755 "$dir" "$target"
umask 022
temporary=$target/.new.$$
trap 'rm -f "$temporary"' EXIT

# put NAME: writes standard input to that file, unless it has this content already.
put() {
    cat > "$temporary" || die "cannot write to $target"
    chmod 644 "$temporary"
    if cmp -s "$temporary" "$target/$1"; then
        return
    fi
    [ ! -e "$target/$1" ] || echo "install-runtime: replacing $target/$1; running pods keep the old one" >&2
    sync "$temporary"
    mv -f "$temporary" "$target/$1"
}

put libweir.so < "$library"
put libweir-nvml.so < "$nvml"
put libweir-mps.so < "$mps"
printf '%s\n' "$host_dir/$version/libweir.so" "$host_dir/$version/libweir-nvml.so" | put ld.so.preload
echo "install-runtime: $host_dir/$version is ready"
