#!/bin/bash
# Installs what the build and the tests need on Debian 12 or Ubuntu: missing packages (apt-get), promtool, a containerd
# with CDI, and, if there is no CUDA toolkit, a pinned one from NVIDIA's wheels in build/cuda. make runs it; it is safe to
# run again.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir

packages=(
    build-essential clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev pkg-config
    libgrpc-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler
    libyaml-dev libcjson-dev libcurl4-openssl-dev libmicrohttpd-dev libcmocka-dev uthash-dev
    liblz4-dev libzstd-dev libssl-dev liburing-dev
    cppcheck codespell shellcheck
    python3 python3-pip unzip curl jq bc patchelf xz-utils iproute2 openssl procps e2fsprogs
    runc containerd containernetworking-plugins iptables busybox-static
)

wheels=(
    nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-nvml-dev==13.0.87
)
# For weir-compile; not every installed toolkit has it.
compiler=nvidia-nvptxcompiler==13.0.88

# For a test of what the loops' host side declares of it (runtime-lib/loop/cufile.h).
cufile=nvidia-cufile==1.15.1.6

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() {
    local missing=() package
    for package in "${packages[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "setup: installing ${missing[*]}"
    as_root apt-get update -q
    # Services of the packages (containerd) must not start: the tests run their own.
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        as_root apt-get install -y -q --no-install-recommends "${missing[@]}"
}

unpack() { # FOLDER WHEEL...
    local folder=$1 wheel
    shift
    mkdir -p "$cache/wheels" "$folder"
    python3 -m pip download -q --no-deps --disable-pip-version-check -d "$cache/wheels" "$@"
    for wheel in "$@"; do
        local name=${wheel%%==*} version=${wheel##*==}
        unzip -qo "$cache/wheels/${name//-/_}-$version"-*.whl 'nvidia/cu13/*' -d "$folder"
    done
}

# The package would start a server; only its program is unpacked.
fetch_promtool() {
    local part=$cache/promtool.part
    [ ! -x "$cache/promtool" ] && ! command -v promtool >/dev/null || return 0
    echo "setup: fetching promtool"
    rm -rf "$part"
    mkdir -p "$part"
    (cd "$part" && { apt-get download -q prometheus || { as_root apt-get update -q && apt-get download -q prometheus; }; } &&
        dpkg -x prometheus_*.deb .) >/dev/null 2>&1 && mv "$part/usr/bin/promtool" "$cache/promtool" ||
        echo "setup: no promtool; tests of metrics and alerts are left out" >&2
    rm -rf "$part"
}

# Debian 12's containerd does not support CDI, and Debian 13's also runs here. The cluster tests use it from this folder;
# nothing is installed. It comes from the mirror that this machine uses.
fetch_containerd() {
    local part=$cache/containerd.part program mirror
    [ ! -x "$cache/containerd/containerd" ] || return 0
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sort -u | head -1) || true
    echo "setup: fetching a containerd with CDI"
    rm -rf "$part"
    mkdir -p "$part"/{lists,cache/archives}/partial "$part/unpacked"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$part/sources.list"
    cat >"$part/apt.conf" <<END
Dir::Etc::SourceList "$part/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$part/lists";
Dir::Cache "$part/cache";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Sandbox::User "root";
END
    if [ -n "$mirror" ] && (cd "$part" && export APT_CONFIG=$part/apt.conf && apt-get update -q &&
        apt-get download -q containerd && dpkg -x containerd_*.deb unpacked) >/dev/null 2>&1; then
        rm -rf "$cache/containerd"
        mkdir -p "$part/bin"
        for program in containerd containerd-shim-runc-v2; do mv "$part/unpacked/usr/bin/$program" "$part/bin/"; done
        mv "$part/bin" "$cache/containerd"
    else
        echo "setup: no containerd with CDI; the test of that is left out" >&2
    fi
    rm -rf "$part"
}

install_toolkit() {
    if [ -x build/cuda/bin/nvcc ] || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
        return 0
    fi
    echo "setup: unpacking a CUDA toolkit into build/cuda"
    unpack build/cuda.part "${wheels[@]}"
    chmod +x build/cuda.part/nvidia/cu13/bin/* build/cuda.part/nvidia/cu13/nvvm/bin/*
    rm -rf build/cuda
    mv build/cuda.part/nvidia/cu13 build/cuda
    rm -rf build/cuda.part
}

# Next to the toolkit's files. The library is moved last, so that an interrupted run is repeated.
install_compiler() {
    local part=build/compiler.part folder
    for folder in build/cuda/lib "${CUDA_HOME:-/usr/local/cuda}"/{lib,lib64}; do
        [ ! -e "$folder/libnvptxcompiler_static.a" ] || return 0
    done
    echo "setup: unpacking the PTX compiler into build/cuda"
    unpack "$part" "$compiler"
    mkdir -p build/cuda/{include,lib}
    mv "$part"/nvidia/cu13/include/nvPTXCompiler.h build/cuda/include/
    mv "$part"/nvidia/cu13/lib/libnvptxcompiler_static.a build/cuda/lib/
    rm -rf "$part"
}

# A toolkit may have it. Without it the test is left out.
install_cufile() {
    local part=build/cufile.part folder
    for folder in build/cuda "${CUDA_HOME:-/usr/local/cuda}"; do
        [ ! -e "$folder/include/cufile.h" ] || return 0
    done
    echo "setup: unpacking libcufile into build/cuda"
    unpack "$part" "$cufile" || { echo "setup: no libcufile; its test is left out" >&2; return 0; }
    mkdir -p build/cuda/{include,lib}
    mv "$part"/nvidia/cu13/lib/libcufile.so.0 build/cuda/lib/
    mv "$part"/nvidia/cu13/include/cufile.h build/cuda/include/
    rm -rf "$part"
}

if command -v apt-get >/dev/null; then
    install_packages
    fetch_promtool
    fetch_containerd
else
    echo "setup: no apt-get here; see e2e/setup.sh for what the build needs" >&2
fi
install_toolkit
install_compiler
install_cufile
