#!/bin/bash
# What a release consists of, in build/release/weir-VERSION:
#
#   weir-agent-VERSION.tar, weir-device-plugin-VERSION.tar   the images for amd64 and arm64, each an OCI layout
#   weir-chart-VERSION.tar, weir-VERSION.tgz                 the Helm chart, as an OCI layout and as a file
#   weir-VERSION.spdx.json                                   what the images are made of (SPDX)
#   NOTES.md, SHA256SUMS, SHA256SUMS.sig                     notes, checksums, the signature
#
# The tag vVERSION must be the current commit and CHANGELOG.md must have the version. UNTAGGED=1 makes a trial release
# of any commit, with the notes of what is unreleased. $KEY is a PEM file with the private key that signs the
# checksums; without it there is no signature. deploy/verify.sh checks a release. The same commit gives the same bytes,
# in any folder, while Debian's packages stay the same.
set -euo pipefail
cd "$(dirname "$0")/.."
VERSION=${VERSION:?}
OUT=${OUT:-build/release/weir-$VERSION}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export LC_ALL=C TZ=UTC PYTHONDONTWRITEBYTECODE=1
umask 022
section=$VERSION

fail() {
    echo "release: $*" >&2
    exit 1
}

has_unreleased() {
    deploy/release.py notes Unreleased > /dev/null 2>&1
}

check_tag() {
    [ -z "$(git status --porcelain)" ] || fail "files differ from the commit"
    [ "$(git rev-parse -q --verify "v$VERSION^{commit}")" = "$(git rev-parse HEAD)" ] ||
        fail "the tag v$VERSION is not the current commit; UNTAGGED=1 makes a trial release"
    ! has_unreleased ||
        fail "CHANGELOG.md has changes under 'Unreleased': they belong under '$VERSION'"
}

# root ARCH BUILD IMAGE NAME
root() {
    if [ "$1" = arm64 ]; then
        B=$2 ARCH=arm64 ROOT=build/arm64-root CROSS=aarch64-linux-gnu- \
            EMULATOR="qemu-aarch64-static -L $PWD/build/arm64-root" deploy/image-root.sh "$3" "$OUT/.roots/$4/$1"
    else
        B=$2 ARCH=$1 deploy/image-root.sh "$3" "$OUT/.roots/$4/$1"
    fi
}

# image IMAGE NAME CONFIG
image() {
    root amd64 build "$1" "$2"
    root arm64 build-arm64 "$1" "$2"
    deploy/image.py "$OUT/$2-$VERSION.tar" "$2:$VERSION" "amd64=$OUT/.roots/$2/amd64" "arm64=$OUT/.roots/$2/arm64" --gzip \
        --limit-mb 60 --entrypoint "[\"/usr/local/bin/$2\"]" --cmd "[\"--config\", \"/etc/weir/$3\"]"
}

if [ -z "${UNTAGGED:-}" ]; then
    check_tag
elif has_unreleased; then
    section=Unreleased
fi
rm -rf "$OUT"
mkdir -p "$OUT"
deploy/release.py notes "$section" > "$OUT/NOTES.md"
deploy/release.py chart "$VERSION" "$OUT"
image agent weir-agent agent.yaml
image plugin weir-device-plugin plugin.yaml
deploy/release.py sbom "$VERSION" "$OUT"/.roots/*/* > "$OUT/weir-$VERSION.spdx.json"
rm -rf "$OUT/.roots"
(cd "$OUT" && sha256sum -- * > SHA256SUMS)
# As `cosign verify-blob --key` and openssl read it.
[ -z "${KEY:-}" ] || openssl dgst -sha256 -sign "$KEY" "$OUT/SHA256SUMS" | base64 -w0 > "$OUT/SHA256SUMS.sig"
echo "release: $OUT"
