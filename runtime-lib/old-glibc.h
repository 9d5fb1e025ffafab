/* Included before everything else in libweir.so: binds to the oldest versions of glibc's symbols. A
 * preloaded library that asks for a version which the container's glibc lacks keeps every program
 * in it from starting, so libweir must ask for nothing younger than 2.17. The functions are the
 * same ones; they only moved from libpthread and libdl into libc, or were inline before.
 * tests/symbols.sh checks the result. */
#pragma once

#define OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")

OLD(dladdr);
OLD(dlopen);
OLD(dlsym);
OLD(pthread_create);
OLD(pthread_detach);
OLD(pthread_key_create);
OLD(pthread_once);
OLD(pthread_setspecific);
OLD(pthread_sigmask);
__asm__(".symver pthread_setname_np,pthread_setname_np@GLIBC_2.12");

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* On x86-64 the kernel's struct stat is glibc's. */
#define fstat(fd, out)  ((int)syscall(SYS_fstat, (fd), (out)))
#define stat(path, out) ((int)syscall(SYS_stat, (path), (out)))
#define gettid()        ((pid_t)syscall(SYS_gettid))
