# Sourced: which versions of the library there are, and which of them containers have mounted. The host's processes
# must be in /proc.
# shellcheck shell=sh

# A bind mount's fourth field names the file that is mounted (where the folder is a file system of its own, the path in
# that), with a word more when another file of that name has taken its place.
is_mounted() { # VERSION
    grep -qsF -e "/$1/libweir.so /" -e "/$1/libweir.so//deleted /" /proc/[0-9]*/mountinfo
}

# Whether install-runtime.sh made it, or began to: others may have folders beside it.
is_version() { # FOLDER
    for file in "$1/libweir.so" "$1/libweir-nvml.so" "$1/ld.so.preload" "$1"/.new.*; do
        [ ! -e "$file" ] || return 0
    done
    return 1
}

# What it put there, and what it had no time to put.
remove_version() { # FOLDER
    rm -f "$1/ld.so.preload" "$1/libweir.so" "$1/libweir-nvml.so" "$1"/.new.*
    rmdir "$1" || true # with something of somebody else's in it
}
