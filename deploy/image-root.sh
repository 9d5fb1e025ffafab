#!/bin/bash
# Makes the root folder of an image from the built programs and their shared libraries. There is no package manager, and
# a shell only if scripts run in the image. deploy/Dockerfile copies the folder into an image, images.sh makes a tarball.
#
#   image-root.sh agent|plugin FOLDER
#
#   agent     weir-agent, weir-compile, weir-mps, weir-selftest, weirctl, libweir-mps.so
#   plugin    weir-device-plugin, libweir.so, libweir-nvml.so, libweir-mps.so, the scripts that install and remove them on a node, and
#             the programs that these scripts call
#
# For each package used, its licence is in /usr/share/doc and its version in /usr/share/weir/packages.
set -euo pipefail
cd "$(dirname "$0")/.."

B=${B:-build}
image=$1
root=$2

fail() {
    echo "image-root: $*" >&2
    exit 1
}

# Copies a file of this system to its real path: Debian's /bin and /lib are links into /usr.
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
    # The package may list the file under / or under /usr.
    package=$(dpkg -S "$(realpath "$1")" 2> /dev/null || dpkg -S "$(realpath "$1" | sed 's|^/usr||')" 2> /dev/null) ||
        fail "no package has $1"
    package=${package%%: *}
    package=${package%%,*}
    dpkg-query -W -f '${binary:Package} ${Version}\n' "$package" >> "$root/usr/share/weir/packages"
    install -D -m 644 "/usr/share/doc/${package%%:*}/copyright" "$root/usr/share/doc/${package%%:*}/copyright"
}

# By ldd, which also lists libraries of libraries.
copy_libraries() {
    local file libraries
    for file in "$@"; do
        libraries=$(ldd "$file") || fail "$file is not a dynamic program"
        ! grep -F 'not found' <<< "$libraries" || fail "$file needs these"
        # shellcheck disable=SC2046
        copy $(grep -o '/[^ ]*' <<< "$libraries")
    done
}

# The driver's NVML is loaded at run time and needs all of glibc's libraries.
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

# Programs that the scripts call.
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
    program weir-agent weir-compile weir-mps weir-selftest weirctl
    mkdir -p "$root/usr/local/lib"
    strip -g -o "$root/usr/local/lib/libweir-mps.so" "$B/lib/libweir-mps.so"
}

make_plugin() {
    program weir-device-plugin
    # Unchanged but for debug information, which is useless in a pod.
    mkdir -p "$root/usr/local/lib/weir"
    for library in libweir libweir-nvml libweir-mps; do
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
