# Sourced: which versions of the library containers have mounted. The host's processes must be in /proc.
# shellcheck shell=sh

# A bind mount's fourth field names the file that is mounted (where the folder is a file system of its own, the path in
# that), with a word more when another file of that name has taken its place.
is_mounted() { # VERSION
    grep -qsF -e "/$1/libweir.so /" -e "/$1/libweir.so//deleted /" /proc/[0-9]*/mountinfo
}
