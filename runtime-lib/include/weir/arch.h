/* What differs between the processors that Weir runs on. */
#pragma once

#if defined(__x86_64__)
#define ARCH_TRIPLET     "x86_64-linux-gnu" /* Debian's folder of libraries */
#define ARCH_FIRST_GLIBC "GLIBC_2.2.5"      /* the version of glibc's first symbols */
#define ARCH_CACHE_FLAGS 0x0303             /* of 64-bit libraries in ld.so.cache */
#define ARCH_AUDIT       AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_TRIPLET     "aarch64-linux-gnu"
#define ARCH_FIRST_GLIBC "GLIBC_2.17"
#define ARCH_CACHE_FLAGS 0x0a03
#define ARCH_AUDIT       AUDIT_ARCH_AARCH64
#else
#error "Weir runs on x86-64 and on arm64"
#endif
