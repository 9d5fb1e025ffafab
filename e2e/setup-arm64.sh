#!/bin/bash
# Installs what `make ARCH=arm64` needs beside e2e/setup.sh: the cross compiler, qemu for the tests, and build/arm64-root
# with Debian's libraries and tools for arm64. They are only unpacked: this machine's packages stay of one architecture.
# dpkg-query can read what is there. It is safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir/arm64
root=build/arm64-root

here=(gcc-aarch64-linux-gnu qemu-user-static)
there=(
    libgrpc-dev libprotobuf-c-dev libyaml-dev libcjson-dev libcurl4-openssl-dev libmicrohttpd-dev libcmocka-dev uthash-dev
    liblz4-dev libzstd-dev libssl-dev liburing-dev
    dash coreutils diffutils grep sed e2fsprogs curl
)
compiler=nvidia-nvptxcompiler==13.0.88

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_compiler() {
    local package missing=()
    for package in "${here[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "setup-arm64: installing ${missing[*]}"
    as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# As if nothing were installed, so that all dependencies come along.
fetch_packages() {
    local apt=$cache/apt
    mkdir -p "$apt"/{lists,archives}/partial
    : >"$apt/status"
    cat >"$apt/conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State::Status "$apt/status";
Dir::State::Lists "$apt/lists";
Dir::Cache::Archives "$apt/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::SourceParts "$apt/sources";
Dir::Etc::SourceList "/dev/null";
Acquire::Languages "none";
Debug::NoLocking "true";
END
    # Debian's own sources alone: others have no arm64.
    mkdir -p "$apt/sources"
    find /etc/apt/sources.list.d -name '*.sources' -exec grep -lZE '^URIs:.*debian(-security)?/?$' {} + |
        xargs -r0 cp -t "$apt/sources"
    grep -hE '^deb .*/debian(-security)?/? ' /etc/apt/sources.list >"$apt/sources/debian.list" 2>/dev/null || true
    echo "setup-arm64: fetching arm64 packages"
    APT_CONFIG=$apt/conf apt-get update -qq
    rm -f "$apt"/archives/*.deb
    APT_CONFIG=$apt/conf apt-get install -y -qq --download-only "${there[@]}"
}

# dpkg's data base has what dpkg-query needs: versions, and whose a file is.
unpack_packages() {
    local deb name db=$root.part/var/lib/dpkg
    rm -rf "$root.part"
    mkdir -p "$db/info"
    echo 1 >"$db/info/format" # names have the architecture
    # Debian's /bin and /lib are links into /usr.
    mkdir -p "$root.part"/usr/{bin,lib,sbin}
    for name in bin lib sbin; do ln -s "usr/$name" "$root.part/$name"; done
    for deb in "$cache"/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root.part" --keep-directory-symlink --no-same-owner
        name=$(dpkg-deb -f "$deb" Package)
        [ "$(dpkg-deb -f "$deb" Multi-Arch)" != same ] || name=$name:arm64
        dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\.||; s|/$||; /^$/d' >"$db/info/$name.list"
        { dpkg-deb -f "$deb" && printf 'Status: install ok installed\n\n'; } >>"$db/status"
    done
}

unpack_ptx_compiler() {
    local wheel=$cache/wheels
    mkdir -p "$wheel"
    python3 -m pip download -q --no-deps --disable-pip-version-check -d "$wheel" --only-binary=:all: \
        --platform manylinux_2_17_aarch64 "$compiler"
    unzip -qo "$wheel"/nvidia_nvptxcompiler-"${compiler##*==}"-*.whl 'nvidia/cu13/lib/*' -d "$root.part/wheel"
    mv "$root.part"/wheel/nvidia/cu13/lib/libnvptxcompiler_static.a "$root.part/usr/lib/aarch64-linux-gnu/"
    rm -rf "$root.part/wheel"
}

install_compiler
if [ ! "$root" -nt e2e/setup-arm64.sh ]; then
    fetch_packages
    unpack_packages
    unpack_ptx_compiler
    rm -rf "$root"
    mv "$root.part" "$root" && touch "$root"
fi
