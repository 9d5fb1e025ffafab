/* Where weir-compile does its work: after sandbox_enter() the process can read and write the
 * descriptors that it has, take memory up to a limit, and end. It opens nothing, starts nothing,
 * sends nothing, and is nobody. */
#pragma once

#include <stdint.h>

struct sandbox {
	uint32_t memory_mib; /* of address space */
	uint32_t seconds;    /* of CPU time; then SIGXCPU, then SIGKILL */
	uint64_t file_max;   /* bytes that a file may grow to; then SIGXFSZ */
};

/* Irrevocable, for the calling thread, which must be the only one. Namespaces and an empty root are
 * taken where they are permitted; all else must succeed: 0, or a negative errno and in *@what what
 * failed. */
int sandbox_enter(const struct sandbox *sandbox, const char **what);
