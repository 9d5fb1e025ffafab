/* The sandbox of weir-compile. After sandbox_enter() the process can read and write its open
 * descriptors, take memory up to a limit, and exit. It cannot open, start or send anything, and
 * runs as nobody. */
#pragma once

#include <stdint.h>

struct sandbox {
	uint32_t memory_mib; /* of address space */
	uint32_t seconds;    /* of CPU time; then SIGXCPU, then SIGKILL */
	uint64_t file_max;   /* bytes that a file may grow to; then SIGXFSZ */
};

/* Cannot be undone. The calling thread must be the only one. Namespaces and the empty root are
 * optional; everything else must succeed. 0, or a negative errno and in *@what the step that
 * failed. */
int sandbox_enter(const struct sandbox *sandbox, const char **what);
