#!/bin/bash
# What is in the images, that they start with nothing else, and that they are the same each time.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
dir=$(mktemp -d /tmp/weir-images-XXXXXX)
trap 'rm -rf "$dir"' EXIT

in_root() { # IMAGE COMMAND...
    local root=$dir/$1
    shift
    if [ "$(id -u)" = 0 ]; then chroot "$root" "$@"; else unshare -r chroot "$root" "$@"; fi
}
archive() { # NAME
    deploy/image.py "$dir/$1.tar" example.com/x/weir:1 "$dir/plugin" --entrypoint '["/p"]'
}
# Every blob is what its name says, and the index leads to the layer.
consistent() {
    mkdir "$dir/oci" && tar -xf "$dir/first.tar" -C "$dir/oci" &&
        (cd "$dir/oci/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum -c --quiet) &&
        blob "$(jq -re '.manifests[0].digest' "$dir/oci/index.json")" > "$dir/manifest" &&
        blob "$(jq -re '.layers[0].digest' "$dir/manifest")" | tar -tf - > "$dir/names" &&
        blob "$(jq -re '.config.digest' "$dir/manifest")" | jq -e '.config.Entrypoint == ["/p"]'
}
blob() {
    cat "$dir/oci/blobs/sha256/${1#sha256:}"
}
no_shell() {
    [ -z "$(find "$dir/agent" -name '*sh' -perm /111 -type f)" ]
}
no_special_rights() {
    [ -z "$(find "$dir/agent" "$dir/plugin" "$dir/example" -perm /6000)" ]
}
licensed() {
    local image
    for image in agent plugin example; do
        grep -q '^libc6[: ]' "$dir/$image/usr/share/weir/packages" &&
            [ -s "$dir/$image/usr/share/doc/libc6/copyright" ] || return 1
    done
}

check "the agent's image can be put together" deploy/image-root.sh agent "$dir/agent"
check "the device plugin's, too" deploy/image-root.sh plugin "$dir/plugin"
for program in weir-agent weir-compile weir-mps weir-selftest weirctl; do
    check "$program starts in it" in_root agent "/usr/local/bin/$program" --help
done
check "weir-device-plugin starts in it" in_root plugin /usr/local/bin/weir-device-plugin --help
check "its installer has what it calls" in_root plugin /usr/local/bin/install-runtime.sh \
    /usr/local/lib/weir/libweir.so 1.0 /node/weir
check "the example's image can be put together" deploy/image-root.sh example "$dir/example"
for script in server batch; do check "$script can be read there" in_root example /bin/sh -n "/usr/local/bin/$script"; done
check "no shell is in the agent's" no_shell
check "nothing in them gives rights" no_special_rights
check "they say what they are made of" licensed
rm -rf "$dir/plugin/node/weir"
check "a tarball can be made" archive first
check "it holds together" consistent
check "with programs and links" grep -qx usr/bin/sh "$dir/names"
check "the same root" deploy/image-root.sh plugin "$dir/plugin"
check "makes a tarball" archive second
check "of the same bytes" cmp "$dir/first.tar" "$dir/second.tar"
exit $failed
