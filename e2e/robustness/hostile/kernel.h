/* Kernels that a client asks the compile service for. */
#pragma once

#include <stdint.h>

#define KERNEL_COMMON 0u /* a salt that all use: the cache has it after the first time */

/* Asks for a kernel of a few instructions, which is another one for each @salt. */
void kernel_ask(int socket, uint32_t id, uint64_t salt);
/* The same for a kernel that takes long. */
void kernel_ask_large(int socket, uint32_t id, uint64_t salt);
/* A salt that nobody had before. */
uint64_t kernel_new_salt(void);
