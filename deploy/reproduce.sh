#!/bin/bash
# Two trial releases of the current commit, built from nothing in two folders, are the same byte for byte. Takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
# Of the make that runs this: the builds below are makes of their own, with as many jobs as there are processors.
unset MAKEFLAGS MFLAGS MAKELEVEL
dir=$(mktemp -d /tmp/weir-reproduce-XXXXXX)
trap 'rm -rf "$dir"' EXIT

build_in() { # FOLDER
    git clone -q . "$1"
    mkdir -p "$1/build"
    ln -s "$PWD/build/cuda" "$1/build/cuda"
    CCACHE_DISABLE=1 UNTAGGED=1 make -s -C "$1" release
}

build_in "$dir/one"
build_in "$dir/another/folder"
diff -r "$dir/one/build/release" "$dir/another/folder/build/release"
cat "$dir"/one/build/release/*/SHA256SUMS
echo "reproduce: both releases are the same"
