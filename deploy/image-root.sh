#!/bin/bash
# Makes the root folder of one of Weir's images out of the built programs and the shared libraries that they
# need: no shell and no package manager where no script runs. deploy/Dockerfile copies such a folder into an
# image, images.sh makes a tarball of it.
#
#   image-root.sh agent|plugin FOLDER
#
#   agent     weir-agent, weir-compile, weir-mps, weirctl
#   plugin    weir-device-plugin, libweir.so and libweir-nvml.so, and the scripts that put it on a node and take it away, with
#             the few programs that these call
#
# Each package that a file comes from leaves its licence in /usr/share/doc, and its version in
# /usr/share/weir/packages.
set -euo pipefail
cd "$(dirname "$0")/.."

B=${B:-build}
image=$1
root=$2

fail() {
    echo "image-root: $*" >&2
    exit 1
}

# A file of this system, at the place where it really lies; Debian's /bin and /lib are links to below /usr.
copy() {
    local file target
    for file in "$@"; do
        target=$root$(realpath "$(dirname "$file")")/$(basename "$file")
        [ ! -e "$target" ] || continue
        mkdir -p "$(dirname "$target")"
        cp -L "$file" "$target"
        chmod 755 "$target"
        note_package "$file"
    done
}

note_package() {
    local package
    # The package may know the file by its name below / or below /usr.
    package=$(dpkg -S "$(realpath "$1")" 2> /dev/null || dpkg -S "$(realpath "$1" | sed 's|^/usr||')" 2> /dev/null) ||
        fail "no package has $1"
    package=${package%%: *}
    package=${package%%,*}
    dpkg-query -W -f '${binary:Package} ${Version}\n' "$package" >> "$root/usr/share/weir/packages"
    install -D -m 644 "/usr/share/doc/${package%%:*}/copyright" "$root/usr/share/doc/${package%%:*}/copyright"
}

# Through ldd, which follows libraries of libraries.
copy_libraries() {
    local file libraries
    for file in "$@"; do
        libraries=$(ldd "$file") || fail "$file is not a dynamic program"
        ! grep -F 'not found' <<< "$libraries" || fail "$file needs these"
        # shellcheck disable=SC2046
        copy $(grep -o '/[^ ]*' <<< "$libraries")
    done
}

# The driver's NVML, which is loaded at run time, needs all of glibc's.
copy_glibc() {
    local name
    for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
        copy "/lib/$(uname -m)-linux-gnu/$name"
    done
}

program() {
    local file
    for file in "$@"; do
        [ -x "$B/bin/$file" ] || fail "no $B/bin/$file; make builds it"
        strip -o "$root/usr/local/bin/$file" "$B/bin/$file"
        copy_libraries "$B/bin/$file"
    done
}

# What a script calls.
tool() {
    local file
    for file in "$@"; do
        file=$(type -P "$file") || fail "no $file here"
        copy "$file"
        copy_libraries "$file"
    done
}

skeleton() {
    rm -rf "$root"
    mkdir -p "$root"/{etc/weir,host,node,proc,dev,sys,run/weir,run/weir-agent,tmp,usr/{bin,lib,lib64,sbin},usr/local/bin} \
        "$root"/usr/share/weir "$root"/var/cache/weir "$root"/var/lib/kubelet/device-plugins
    chmod 1777 "$root/tmp"
    local link
    for link in bin lib lib64 sbin; do ln -s "usr/$link" "$root/$link"; done
    printf '%s\n' root:x:0:0::/:/sbin/nologin nobody:x:65534:65534::/:/sbin/nologin > "$root/etc/passwd"
    printf '%s\n' root:x:0: nogroup:x:65534: > "$root/etc/group"
    echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
}

make_agent() {
    program weir-agent weir-compile weir-mps weirctl
}

make_plugin() {
    program weir-device-plugin
    # As it was linked, so that it needs nothing of ours; debug information is of no use in a tenant.
    mkdir -p "$root/usr/local/lib/weir"
    for library in libweir libweir-nvml; do
        strip -g -o "$root/usr/local/lib/weir/$library.so" "$B/lib/$library.so"
    done
    install -m 755 deploy/{install-runtime,remove-runtime,remove-versions,await-nodes,unlabel-nodes}.sh "$root/usr/local/bin/"
    install -m 644 deploy/{library-use,api-server}.sh "$root/usr/local/bin/"
    tool dash mkdir chmod cat cmp sync mv rm rmdir true sleep grep sed sort tr wc base64 chattr curl
    ln -s dash "$root/usr/bin/sh"
}

umask 022
skeleton
copy_glibc
case $image in
agent | plugin) "make_$image" ;;
*) fail "no image $image" ;;
esac
sort -u -o "$root/usr/share/weir/packages" "$root/usr/share/weir/packages"
