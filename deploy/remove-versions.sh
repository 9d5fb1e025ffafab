#!/bin/sh
# Removes versions of the library that no container uses or will use again:
#
#   remove-versions.sh DIR VERSION PLUGIN_DIR
#
# These stay: VERSION; versions that a container has mounted; versions in the kubelet's checkpoint in PLUGIN_DIR, because
# the kubelet mounts them when a container starts or restarts; and files that install-runtime.sh did not create. If the
# script cannot find this out, everything stays.
set -eu
# shellcheck source-path=SCRIPTDIR source=library-use.sh
. "${0%/*}/library-use.sh"

dir=$1 version=$2 plugin_dir=$3
notes=$plugin_dir/kubelet_internal_checkpoint

all_stay() {
    echo "remove-versions: $*: every version stays" >&2
    exit 0
}

# The answers of device plugins in the kubelet's checkpoint, one for each resource of a container.
answers() {
    grep -oE '"AllocResp":"[A-Za-z0-9+/=]*"' "$notes" | sed 's/.*:"//; s/"$//'
}

# Paths are plain text in an answer.
read_answers() {
    answers | while read -r answer; do printf '%s' "$answer" | base64 -d; done | grep -aoE '/[^/]+/libweir\.so' || true
}

[ -S "$plugin_dir/kubelet.sock" ] || all_stay "no kubelet at $plugin_dir"
noted=
if [ -e "$notes" ]; then
    [ "$(grep -o '"PodUID":' "$notes" | wc -l)" = "$(answers | wc -l)" ] || all_stay "$notes is not as we know it"
    noted=$(read_answers)
fi

is_noted() { # VERSION
    printf '%s\n' "$noted" | grep -qxF "/$1/libweir.so"
}

for folder in "$dir"/*/; do
    folder=${folder%/} other=${folder##*/}
    if [ "$other" = "$version" ] || [ ! -e "$folder/ld.so.preload" ]; then
        continue
    elif is_mounted "$other" || is_noted "$other"; then
        echo "remove-versions: $other is in use"
    else
        remove_version "$folder"
        echo "remove-versions: removed $other"
    fi
done
