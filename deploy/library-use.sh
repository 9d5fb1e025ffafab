# Sourced. Finds versions of the library, and which of them containers have mounted. /proc must show the host's processes.
# shellcheck shell=sh

# The fourth field of a bind mount is the path of the mounted file in its file system. A word follows it if another file
# has replaced this one.
is_mounted() { # VERSION
    grep -qsF -e "/$1/libweir.so /" -e "/$1/libweir.so//deleted /" /proc/[0-9]*/mountinfo
}

# True: install-runtime.sh created the folder, perhaps not completely. Other folders are not ours.
is_version() { # FOLDER
    for file in "$1/libweir.so" "$1/libweir-nvml.so" "$1/libweir-mps.so" "$1/ld.so.preload" "$1"/.new.*; do
        [ ! -e "$file" ] || return 0
    done
    return 1
}

# Removes its files, also temporary ones.
remove_version() { # FOLDER
    rm -f "$1/ld.so.preload" "$1/libweir.so" "$1/libweir-nvml.so" "$1/libweir-mps.so" "$1"/.new.*
    rmdir "$1" || true # keep a folder with other files
}
