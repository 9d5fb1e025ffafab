/* The file of what was found of kernels that ran at the same time (policy/coexec/memory.h), beside
 * that of the profiles. It is written when something has changed, a while later, under another
 * name; a rename puts it in place. One that is damaged, or of another version, is ignored. */
#pragma once

#include "policy/coexec/memory.h"

#include "weir/loop.h"

#define COEXEC_FILE_NAME    "coexec" /* in the agent's state folder */
#define COEXEC_FILE_VERSION 1
#define COEXEC_FILE_LATE_NS 60000000000ull /* from a change to the file, at most */

struct coexec_file {
	struct coexec_memory *memory;
	char *path; /* NULL: there is no file */
	struct loop_timer timer;
	uint64_t saved; /* memory->changes that the file has */
};

/* Reads the file at @path into @memory, which is empty. 0 or a negative errno. */
int coexec_file_init(struct coexec_file *file, struct loop *loop, struct coexec_memory *memory,
		     const char *path);
/* Writes what is not written yet. */
void coexec_file_deinit(struct coexec_file *file);

/* The bytes of a file into @memory. NULL, or what is wrong with them; nothing was taken then. */
const char *coexec_file_parse(struct coexec_memory *memory, const uint8_t *bytes, size_t size);
