#!/bin/bash
# build.sh COMMIT FOLDER: the agent and the library of that commit, in FOLDER/bin and FOLDER/lib.
set -euo pipefail
commit=$1 folder=$2
cd "$(dirname "$0")/../../.."
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive "$commit" | tar -x -C "$source"
mkdir "$source/build"
[ ! -e build/cuda ] || ln -s "$PWD/build/cuda" "$source/build/cuda"
touch "$source/build/.setup"
# Not with what we are made with: a sanitizer, say.
env -u MAKEFLAGS -u MAKELEVEL -u B -u SAN make -C "$source" -j"$(nproc)" build/bin/weir-agent build/lib/libweir.so
mkdir -p "$folder/bin" "$folder/lib"
cp "$source/build/bin/weir-agent" "$folder/bin/"
cp -L "$source/build/lib/libweir.so" "$folder/lib/"
