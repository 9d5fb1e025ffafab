#!/bin/bash
# verify.sh FOLDER PUBLIC-KEY: the signature of a release's checksums, and that its files have them.
set -euo pipefail
key=$(realpath "$2")
cd "$1"
base64 -d SHA256SUMS.sig | openssl dgst -sha256 -verify "$key" -signature /dev/stdin SHA256SUMS
sha256sum --check --strict --quiet SHA256SUMS
