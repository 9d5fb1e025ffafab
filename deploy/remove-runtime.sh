#!/bin/sh
# Removes Weir's files from a node after its agent and weir-mps have ended:
#
#   remove-runtime.sh LIBRARY_DIR RUN_DIR FOLDER_OR_FILE...
#
# If a container has mounted a version of the library, this version stays, because the container could not restart without
# it. Then RUN_DIR stays, too, but empty: the container will find a later agent there. /proc must show the host's
# processes.
set -eu
# shellcheck source-path=SCRIPTDIR source=library-use.sh
. "${0%/*}/library-use.sh"

library_dir=$1 run_dir=$2
shift 2

# Where a folder is, as mountinfo says it: number of its file system, path there. Nothing if it is a mount of its own.
place_of() { # FOLDER
    at=
    while read -r _ _ device root point _; do
        point=${point%/}
        case $1 in "$point" | "$point"/*) ;; *) continue ;; esac
        [ ${#point} -lt ${#at} ] || at=$point place="$device ${root%/}${1#"$point"}"
    done < /proc/self/mountinfo
    [ "$at" = "$1" ] || echo "$place"
}

# Weir's own containers have mounted these folders. A pod cannot mount them, while it can give its processes any name.
agent_runs() {
    for folder in "$run_dir-agent" "$run_dir-mps"; do
        place=$(place_of "$folder" | sed 's/[].*^$\\+?(){}|[]/\\&/g')
        [ -z "$place" ] || ! grep -qsE "^[0-9]+ [0-9]+ $place /" /proc/[0-9]*/mountinfo || return 0
    done
    return 1
}

empty() {
    # The agent's pages are immutable.
    chattr -R -f -i "$1" || true
    rm -rf "${1:?}/"* "${1:?}/".[!.]*
}

# Removes files only: containers have mounted the folders.
empty_folders() {
    for file in "$1"/* "$1"/.[!.]* "$1"/*/* "$1"/*/.[!.]*; do
        [ -d "$file" ] || rm -f "$file"
    done
}

remove() {
    [ -d "$1" ] || return 0
    empty "$1"
    rmdir "$1"
    echo "remove-runtime: removed $1"
}

waited=0
while agent_runs; do
    waited=$((waited + 1))
    if [ $waited -gt "${WAIT_SECONDS:-60}" ]; then
        echo "remove-runtime: an agent still runs here" >&2
        exit 1
    fi
    sleep 1
done

used=
for version in "$library_dir"/*/; do
    version=${version%/}
    if ! is_version "$version"; then
        continue
    elif is_mounted "${version##*/}"; then
        used=1
        echo "remove-runtime: $version stays: a container uses it"
    else
        remove_version "$version"
        echo "remove-runtime: removed $version"
    fi
done
if [ -n "$used" ]; then
    empty_folders "$run_dir"
else
    # A folder with other files stays.
    rmdir "$library_dir" 2> /dev/null || true
    remove "$run_dir"
fi
for path in "$@"; do
    if [ ! -f "$path" ]; then
        remove "$path"
    elif [ -z "$used" ]; then # a CDI specification: such a container could not restart without it
        rm "$path"
        echo "remove-runtime: removed $path"
    fi
done
