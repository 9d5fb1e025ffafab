#!/bin/bash
# A trial release: what is in it, that it is signed, and that a program built in another folder is the same.
# `make reproduce` compares two whole releases; it takes minutes.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
dir=$(mktemp -d /tmp/weir-release-XXXXXX)
trap 'rm -rf "$dir"' EXIT
VERSION=${VERSION:-$(sed -n 's/^VERSION *:= *//p' Makefile)}
export VERSION SOURCE_DATE_EPOCH=1700000000
out=$dir/release

release() {
    UNTAGGED=1 KEY=$dir/key.pem OUT=$out deploy/release.sh
}
# Every blob is what its name says.
consistent() { # NAME
    mkdir -p "$dir/$1" && tar -xf "$out/$1-$VERSION.tar" -C "$dir/$1" &&
        (cd "$dir/$1/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum -c --quiet)
}
blob() { # NAME DIGEST
    cat "$dir/$1/blobs/sha256/${2#sha256:}"
}
top() { # NAME
    blob "$1" "$(jq -re '.manifests[0].digest' "$dir/$1/index.json")"
}
# The program of each architecture's image is one of this architecture.
for_both() { # NAME
    local arch digest machine
    for arch in amd64 arm64; do
        digest=$(top "$1" | jq -re --arg arch $arch '.manifests[] | select(.platform.architecture == $arch) | .digest') &&
            blob "$1" "$(blob "$1" "$digest" | jq -re '.layers[0].digest')" | tar -xzOf - "usr/local/bin/$1" > "$dir/program" || return 1
        machine=$(od -An -t u2 -j 18 -N 2 "$dir/program" | tr -d ' ')
        [ "$arch $machine" = "amd64 62" ] || [ "$arch $machine" = "arm64 183" ] || return 1
    done
}
is_chart() {
    local layer
    layer=$(top weir-chart | jq -re '.layers[0].digest') && blob weir-chart "$layer" | cmp - "$out/weir-$VERSION.tgz" &&
        blob weir-chart "$(top weir-chart | jq -re '.config.digest')" | jq -e '.appVersion == env.VERSION' > /dev/null &&
        tar -tzf "$out/weir-$VERSION.tgz" > "$dir/names" && grep -qx weir/values.schema.json "$dir/names"
}
chart_is_the_same() {
    mkdir "$dir/again" && (umask 077 && deploy/release.py chart "$VERSION" "$dir/again") &&
        cmp "$out/weir-$VERSION.tgz" "$dir/again/weir-$VERSION.tgz" &&
        cmp "$out/weir-chart-$VERSION.tar" "$dir/again/weir-chart-$VERSION.tar"
}
bill() {
    jq -e '(.packages | map(.SPDXID)) as $known | ($known | length) == ($known | unique | length) and
        (.packages | map(.name) | (index("weir") and index("nvidia-nvptxcompiler") and index("libc6-amd64") and index("libc6-arm64"))) and
        ([.relationships[].relatedSpdxElement] - $known == []) and .creationInfo.created == "2023-11-14T22:13:20Z"' \
        "$out/weir-$VERSION.spdx.json"
}
changed_is_noticed() {
    cp -r "$out" "$dir/changed" && echo >> "$dir/changed/NOTES.md" && ! deploy/verify.sh "$dir/changed" "$dir/public.pem"
}
resigned_is_noticed() {
    (cd "$dir/changed" && rm SHA256SUMS && sha256sum -- * > "$dir/sums" && mv "$dir/sums" SHA256SUMS) &&
        ! deploy/verify.sh "$dir/changed" "$dir/public.pem"
}
# No commit has this tag.
untagged_is_refused() {
    ! VERSION=99.0.0 OUT=$dir/none deploy/release.sh > "$dir/refused" 2>&1 && grep -qE 'UNTAGGED=1|differ from the commit' "$dir/refused" && [ ! -e "$dir/none" ]
}
# Built from copies of the tree.
build_in() { # FOLDER PROGRAM
    mkdir -p "$1/build" && git ls-files | tar -cT - | tar -xC "$1" && ln -s "$PWD/build/cuda" "$1/build/cuda" &&
        touch "$1/build/.setup" && CCACHE_DISABLE=1 make -s -C "$1" "build/bin/$2" && strip "$1/build/bin/$2"
}
is_built_the_same() { # PROGRAM
    build_in "$dir/one" "$1" && build_in "$dir/another/folder" "$1" &&
        cmp "$dir/one/build/bin/$1" "$dir/another/folder/build/bin/$1"
}

openssl ecparam -name prime256v1 -genkey -noout -out "$dir/key.pem"
openssl ec -in "$dir/key.pem" -pubout -out "$dir/public.pem" 2> /dev/null
check "a release can be made" release
for name in weir-agent weir-device-plugin; do
    check "the image $name holds together" consistent $name
    check "it has programs for both architectures" for_both $name
done
check "the chart's layout holds together" consistent weir-chart
check "its layer is the chart" is_chart
check "it is made again with the same bytes" chart_is_the_same
check "the SBOM names what the images are made of" bill
check "the notes are there" grep -q '^- ' "$out/NOTES.md"
check "the signature and all checksums are right" deploy/verify.sh "$out" "$dir/public.pem"
check "a changed file is noticed" changed_is_noticed
check "so are checksums that another signed" resigned_is_noticed
check "without the tag there is no release" untagged_is_refused
check "a program built in two folders has the same bytes" is_built_the_same weir-selftest
exit $failed
