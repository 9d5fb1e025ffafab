#!/bin/sh
# Puts libweir.so on a node, where containers get it mounted from, with libweir-nvml.so, which lies beside it:
#
#   DIR/VERSION/libweir.so, libweir-nvml.so
#                                never change once they are there: running pods have them mapped, and a
#                                container that restarts gets the same mounts again
#   DIR/VERSION/ld.so.preload    names the libraries as containers see them
#
# Each file comes by a rename, the one that names the libraries last, so that no process ever sees half
# of it. Older versions stay. Safe to run again, and by several at a time.
#
#   install-runtime.sh LIBRARY VERSION DIR [HOST_DIR]
#
# DIR is where we see the node's folder, HOST_DIR (the same when left out) what it is called there.
set -eu

die() {
    echo "install-runtime: $*" >&2
    exit 1
}

[ $# -ge 3 ] || die "usage: install-runtime.sh LIBRARY VERSION DIR [HOST_DIR]"
library=$1 version=$2 dir=$3 host_dir=${4:-$3}
nvml=${library%/*}/libweir-nvml.so

case $version in
'' | *[!0-9A-Za-z.+-]* | .*) die "not a version: '$version'" ;;
esac

# The loader complains about, and then ignores, what it cannot preload: no pod should find that out.
for file in "$library" "$nvml"; do
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

# put NAME: what comes in becomes that file, unless it is there already.
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
printf '%s\n' "$host_dir/$version/libweir.so" "$host_dir/$version/libweir-nvml.so" | put ld.so.preload
echo "install-runtime: $host_dir/$version is ready"
