#!/bin/bash
# Packs the programs with the shared libraries that they need into one relocatable tarball, for
# machines on which nothing can be installed:
#
#   weir-VERSION-x86_64/
#     bin/      agent, weir-compile, weir-mps, weir-selftest, weirctl, device plugin and workloads; run path ../lib
#     lib/      libweir.so, libweir-nvml.so, libweir-mps.so and the libraries that the programs need, without glibc's and the driver's
#     include/weir/, lib/libweir-loop.a, examples/     for programs that know about Weir
#     bench/ tests/   programs of experiments; unit tests
#     programs/ simprograms/   CUDA programs as nvcc builds them; those for the simulated GPU
#     simcuda/  the simulated driver and NVML
#     e2e/bench/         run and its experiments
#     commit    the commit that the programs were built from
#
# then checks it: glibc 2.36 is enough, libweir.so needs libc alone, and every program starts from
# another folder without LD_LIBRARY_PATH.
set -euo pipefail
shopt -s nullglob

B=${B:-build}
VERSION=${VERSION:?}
GLIBC_MAX=2.36
name=weir-$VERSION-$(uname -m)
tarball=$B/$name.tar.gz
cuda=$(realpath "${CUDA_HOME:-build/cuda}")
root=$B/bundle/$name

fail() {
    echo "bundle: $*" >&2
    exit 1
}

is_elf() {
    [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]
}

# Libraries that the machine provides: glibc's, and the driver's.
is_system_library() {
    case "$1" in
    ld-linux* | libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | \
        libanl.so.* | libutil.so.* | libcuda.so.* | libnvidia-ml.so.* | linux-vdso*) return 0 ;;
    esac
    return 1
}

copy_programs() { # FOLDER FILE...
    mkdir -p "$root/$1"
    local to=$root/$1 file
    shift
    for file in "$@"; do
        if [ -f "$file" ] && [ -x "$file" ]; then
            install -m 755 "$file" "$to/"
        fi
    done
}

# ldd also follows the libraries of libraries.
copy_libraries() {
    local file library path
    for file in "$root"/{bin,bench,tests,simcuda,programs,simprograms}/*; do
        is_elf "$file" || continue
        while read -r library path; do
            [ -n "$path" ] || fail "$(basename "$file") needs $library, which is not here"
            is_system_library "$library" || [ -e "$root/lib/$library" ] ||
                install -m 644 "$path" "$root/lib/$library"
        done < <(LD_LIBRARY_PATH=$PWD/$B/simcuda ldd "$file" | awk '$2 == "=>" {print $1, ($3 ~ /^\//) ? $3 : ""}')
    done
}

# The libraries that the file names directly.
needed() {
    objdump -p "$1" | awk '$1 == "NEEDED" {print $2}'
}

set_run_paths() {
    local file
    for file in "$root"/{bin,bench,tests,simcuda,programs,simprograms}/*; do
        if is_elf "$file"; then
            patchelf --set-rpath "\$ORIGIN/../lib" "$file"
        fi
    done
    for file in "$root"/lib/*; do
        # libweir needs no library of ours.
        [[ $(basename "$file") = libweir*.so ]] || ! is_elf "$file" || patchelf --set-rpath "\$ORIGIN" "$file"
    done
}

strip_all() {
    local file
    for file in "$root"/{bin,bench,tests,lib,simcuda,programs,simprograms}/*; do
        if is_elf "$file"; then
            strip --strip-unneeded "$file"
        fi
    done
}

check_glibc() {
    local file version
    for file in "$root"/{bin,bench,tests,lib,simcuda,programs,simprograms}/*; do
        is_elf "$file" || continue
        version=$(objdump -T "$file" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -uV | tail -1)
        [ "$(printf '%s\n' "$version" "$GLIBC_MAX" | sort -V | tail -1)" = "$GLIBC_MAX" ] ||
            fail "$(basename "$file") needs glibc $version"
    done
}

check_libweir() {
    local file library
    for file in "$root"/lib/libweir*.so; do
        for library in $(needed "$file"); do
            case "$library" in
            libc.so.6 | ld-linux-*) ;;
            *) fail "$(basename "$file") needs $library" ;;
            esac
        done
    done
}

# As its comments say, with nothing but the bundle, CUDA and liburing.
build_example() { # FOLDER
    "$cuda/bin/nvcc" -std=c++17 -arch=compute_75 -ptx -Iinclude -o "$1/loop.ptx" examples/loop.cu &&
        gcc -Iinclude -isystem "$cuda/include" -Llib -o "$1/loop" examples/loop.c -lweir-loop -luring simcuda/libcuda.so.1 \
            -ldl -lpthread
}

# Everything must resolve inside the bundle or be the system's; the services must say their version.
check_start() {
    local file missing copy
    copy=$(mktemp -d)
    tar -xzf "$tarball" -C "$copy"
    for file in "$copy/$name"/{bin,bench,tests,simcuda,programs,simprograms}/*; do
        is_elf "$file" || continue
        missing=$(cd / && env -i ldd "$file" | awk '/not found/ && $1 !~ /^lib(cuda|nvidia-ml)\.so/ {print $1}')
        [ -z "$missing" ] || fail "$(basename "$file") misses $missing"
        missing=$(cd / && env -i ldd "$file" | awk -v here="$copy/" '$2 == "=>" && index($3, here) != 1 {print $1}' |
            while read -r library; do is_system_library "$library" || echo "$library"; done)
        [ -z "$missing" ] || fail "$(basename "$file") takes $missing from the system"
    done
    for file in weir-agent weir-compile weir-mps weirctl weir-device-plugin; do
        (cd / && env -i "$copy/$name/bin/$file" --help >/dev/null) || fail "$file does not start"
    done
    (cd / && env -i LD_LIBRARY_PATH="$copy/$name/simcuda" WEIR_SIM_DIR="$copy/sim" \
        "$copy/$name/bin/vector-add" >/dev/null) || fail "vector-add does not run on the simulated GPU"
    (cd "$copy/$name" && build_example "$copy") || fail "examples/loop.c and loop.cu do not build"
    [ "$(cd / && env -i LD_LIBRARY_PATH="$copy/$name/simcuda" WEIR_SIM_DIR="$copy/sim" \
        "$copy/loop" "$copy/loop.ptx" count_lines "$copy/$name/examples/loop.c")" = "$(wc -l <runtime-lib/examples/loop.c)" ] ||
        fail "examples/loop.c does not count lines"
    "$copy/$name/e2e/bench/run" --list >/dev/null || fail "e2e/bench/run does not start"
    rm -rf "$copy"
}

rm -rf "$root" "$tarball"
copy_programs bin "$B"/bin/*
copy_programs bench "$B"/bench/*
copy_programs tests "$B"/tests/test-*
copy_programs programs "$B"/programs/*
copy_programs simprograms "$B"/simprograms/*
mkdir -p "$root"/{lib,simcuda,e2e/bench/programs,e2e/foreign}
install -m 755 "$B"/simcuda/lib*.so* "$root/simcuda/"
copy_libraries
install -m 644 "$B"/lib/libweir{,-nvml,-mps}.so "$root/lib/"
install -m 644 "$B"/lib/libloop-tokens.so "$root/lib/" # loaded by e2e/bench/programs/tokens.py
install -m 644 "$B"/lib/plain-slice.so "$root/lib/"    # preloaded by e2e/bench/lib/plain_slices.py
make -s --no-print-directory B="$B" DESTDIR= PREFIX="$root" install-development
cp -r runtime-lib/examples "$root/"
cp -r e2e/bench/{run,sets.json,lib,experiments} "$root/e2e/bench/"
cp e2e/bench/programs/*.{py,sh} "$root/e2e/bench/programs/"
cp e2e/foreign/*.py "$root/e2e/foreign/"
rm -rf "$root"/e2e/bench/*/__pycache__
git describe --always --dirty --abbrev=7 --exclude='*' > "$root/commit"
strip_all
set_run_paths
check_glibc
check_libweir
tar -C "$B/bundle" -czf "$tarball" --owner=0 --group=0 "$name"
check_start
rm -rf "$B/bundle"
echo "bundle: $tarball, $(du -k "$tarball" | cut -f1) KiB"
