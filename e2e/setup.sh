#!/bin/bash
# Installs what the build and the tests need on Debian 12 or Ubuntu (by apt-get, only what is missing), and
# a CUDA toolkit into build/cuda where there is none: the compiler, headers and NVML's header from NVIDIA's
# wheels, pinned. Run by make; safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir

packages=(
    build-essential clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev pkg-config
    libgrpc-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler
    libyaml-dev libcjson-dev libcurl4-openssl-dev libmicrohttpd-dev libcmocka-dev uthash-dev
    liblz4-dev libzstd-dev
    cppcheck codespell shellcheck
    python3 python3-pip unzip curl jq bc patchelf xz-utils iproute2 openssl procps
    runc containerd containernetworking-plugins iptables busybox-static
)

wheels=(
    nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-nvml-dev==13.0.87
)

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

install_toolkit() {
    if [ -x build/cuda/bin/nvcc ] || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
        return 0
    fi
    echo "setup: unpacking a CUDA toolkit into build/cuda"
    mkdir -p "$cache/wheels" build/cuda.part
    python3 -m pip download -q --no-deps --disable-pip-version-check -d "$cache/wheels" "${wheels[@]}"
    local wheel
    for wheel in "${wheels[@]}"; do
        local name=${wheel%%==*} version=${wheel##*==}
        unzip -qo "$cache/wheels/${name//-/_}-$version"-*.whl 'nvidia/cu13/*' -d build/cuda.part
    done
    chmod +x build/cuda.part/nvidia/cu13/bin/* build/cuda.part/nvidia/cu13/nvvm/bin/*
    rm -rf build/cuda
    mv build/cuda.part/nvidia/cu13 build/cuda
    rm -rf build/cuda.part
}

if command -v apt-get >/dev/null; then
    install_packages
else
    echo "setup: no apt-get here; see e2e/setup.sh for what the build needs" >&2
fi
install_toolkit
