/* Lets one libweir.so run in any container. If a preloaded library needs a symbol version or a
 * library that the container lacks, no program in it starts. So libweir needs libc.so.6 alone, and
 * nothing in it that is younger than glibc 2.17. Before glibc 2.34 some functions lie in libdl and
 * libpthread, which the process need not have loaded. These are weak here, and bound when the
 * driver, which needs these libraries, is loaded. Included before everything else; tests/symbols.sh
 * checks the result. */
#pragma once

#include "weir/arch.h"

/* Since glibc 2.38 the headers replace strtoul(), sscanf() and others by functions of that version,
 * which know binary numbers. */
#include <features.h>
#undef __GLIBC_USE_C2X_STRTOL
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#define __GLIBC_USE_C23_STRTOL 0

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WEAK_OLD(name)           \
	__asm__(".weak " #name); \
	__asm__(".symver " #name "," #name "@" ARCH_FIRST_GLIBC)

WEAK_OLD(dlopen);
WEAK_OLD(dlsym);
WEAK_OLD(pthread_create);
WEAK_OLD(pthread_key_create);
WEAK_OLD(pthread_setspecific);

/* The kernel's struct stat is glibc's. */
#define fstat(fd, out)  ((int)syscall(SYS_fstat, (fd), (out)))
#define stat(path, out) ((int)syscall(SYS_newfstatat, AT_FDCWD, (path), (out), 0))
#define gettid()        ((pid_t)syscall(SYS_gettid))
