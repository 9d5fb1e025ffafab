#!/bin/bash
# Makes the root folder of an image from the built programs and their shared libraries. There is no package manager, and
# a shell only if scripts run in the image. deploy/Dockerfile copies the folder into an image, images.sh makes a tarball.
#
#   image-root.sh agent|plugin|example FOLDER
#
#   agent     weir-agent, weir-compile, weir-mps, weir-selftest, weirctl, libweir-mps.so
#   plugin    weir-device-plugin, libweir.so, libweir-nvml.so, libweir-mps.so, the scripts that install and remove them on a node, and
#             the programs that these scripts call
#   example   `server` and `batch`, which the quick start runs in pods
#
# With $ARCH, $ROOT, $CROSS and $EMULATOR of `make ARCH=arm64`, for arm64 with the libraries of $ROOT. Each program must
# start in the folder.
#
# For each package used, its licence is in /usr/share/doc and its version in /usr/share/weir/packages.
set -euo pipefail
cd "$(dirname "$0")/.."

export LC_ALL=C
B=${B:-build}
image=$1
root=$2
from=${ROOT:+$PWD/$ROOT} # libraries and tools come from below
triplet=$(if [ "${ARCH:-}" = arm64 ]; then echo aarch64; else uname -m; fi)-linux-gnu

fail() {
    echo "image-root: $*" >&2
    exit 1
}

# Where a file's folder really is: Debian's /bin and /lib are links into /usr.
real_folder() {
    local folder
    folder=$(realpath "$from$(dirname "$1")")
    echo "${folder#"$from"}"
}

copied=() # files of packages

# Copies a file of this system, or of $from, to its real path.
copy() {
    local file target
    for file in "$@"; do
        target=$root$(real_folder "$file")/$(basename "$file")
        [ ! -e "$target" ] || continue
        mkdir -p "$(dirname "$target")"
        cp -L "$from$file" "$target"
        chmod 755 "$target"
        file=$(realpath "$from$file")
        copied+=("${file#"$from"}")
    done
}

# At once, because each call of dpkg-query reads its whole data base.
note_packages() {
    local db=$from/var/lib/dpkg packages path file
    local -A owner=() used=()
    # The package may list the file under / or under /usr.
    while IFS= read -r file; do
        packages=${file%%: *} path=${file#*: }
        owner[$path]=${packages%%,*}
    done < <(dpkg-query --admindir "$db" -S "${copied[@]}" "${copied[@]#/usr}" 2> /dev/null)
    for file in "${copied[@]}"; do
        path=${owner[$file]:-${owner[${file#/usr}]:-}}
        [ -n "$path" ] || fail "no package has $file"
        used[$path]=
    done
    dpkg-query --admindir "$db" -W -f '${binary:Package} ${Version}\n' "${!used[@]}" |
        sort -u > "$root/usr/share/weir/packages"
    for path in "${!used[@]}"; do
        install -D -m 644 "$from/usr/share/doc/${path%%:*}/copyright" "$root/usr/share/doc/${path%%:*}/copyright"
    done
}

# What ldd does, for a program of any architecture that can run here.
list_libraries() {
    if [ -n "$from" ]; then
        # shellcheck disable=SC2086
        $EMULATOR "$from/lib/ld-linux-aarch64.so.1" --list "$1"
    else
        ldd "$1"
    fi
}

# Also libraries of libraries.
copy_libraries() {
    local file libraries
    for file in "$@"; do
        # The node has the driver's library.
        libraries=$(list_libraries "$file" | grep -v 'libcuda\.so\.1') || fail "$file is not a dynamic program"
        ! grep -F 'not found' <<< "$libraries" || fail "$file needs these"
        # shellcheck disable=SC2046
        copy $(grep -o '/[^ ]*' <<< "${libraries//"$from"/}")
    done
}

# The driver's NVML is loaded at run time and needs all of glibc's libraries.
copy_glibc() {
    local name
    for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
        copy "/lib/$triplet/$name"
    done
}

program() {
    local file
    for file in "$@"; do
        [ -x "$B/bin/$file" ] || fail "no $B/bin/$file; make builds it"
        "${CROSS:-}strip" -o "$root/usr/local/bin/$file" "$B/bin/$file"
        copy_libraries "$B/bin/$file"
    done
}

# No program starts in a container whose glibc is older than a preloaded library needs.
glibc_is_old() {
    local newest
    newest=$("${CROSS:-}objdump" -T "$1" | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1)
    [ "${newest#GLIBC_2.}" -le 17 ] || fail "$1 needs $newest, and must do with 2.17"
}

# Programs that the scripts call.
tool() {
    local file
    for file in "$@"; do
        file=$(PATH=$from/usr/bin:$from/usr/sbin:$from/bin:$from/sbin type -P "$file") || fail "no $file here"
        copy "${file#"$from"}"
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
    "${CROSS:-}strip" -g -o "$root/usr/local/lib/libweir-mps.so" "$B/lib/libweir-mps.so"
}

make_plugin() {
    program weir-device-plugin
    # Unchanged but for debug information, which is useless in a pod.
    mkdir -p "$root/usr/local/lib/weir"
    for library in libweir libweir-nvml libweir-mps; do
        glibc_is_old "$B/lib/$library.so"
        "${CROSS:-}strip" -g -o "$root/usr/local/lib/weir/$library.so" "$B/lib/$library.so"
    done
    install -m 755 deploy/{install-runtime,remove-runtime,remove-versions,await-nodes,unlabel-nodes}.sh "$root/usr/local/bin/"
    install -m 644 deploy/{library-use,api-server}.sh "$root/usr/local/bin/"
    tool dash mkdir chmod cat cmp sync mv rm rmdir true sleep grep sed sort tr wc base64 chattr curl
    ln -s dash "$root/usr/bin/sh"
}

make_example() {
    local name
    program burst filler
    for name in server batch; do install -m 755 "deploy/example/$name.sh" "$root/usr/local/bin/$name"; done
    tool dash sed sleep
    ln -s dash "$root/usr/bin/sh"
}

# Needs no privileges.
in_root() {
    if [ "$(id -u)" = 0 ]; then chroot "$root" "$@"; else unshare -r chroot "$root" "$@"; fi
}

all_start() {
    local file emulator=
    if [ -n "$from" ]; then
        emulator=/.emulator
        cp "$(type -P "${EMULATOR%% *}")" "$root$emulator"
    fi
    for file in "$root"/usr/local/bin/weir*; do
        [ -e "$file" ] || continue
        in_root $emulator "/usr/local/bin/${file##*/}" --help > /dev/null || fail "${file##*/} does not start"
    done
    rm -f "$root/.emulator"
}

umask 022
skeleton
copy_glibc
case $image in
agent | plugin | example) "make_$image" ;;
*) fail "no image $image" ;;
esac
note_packages
all_start
