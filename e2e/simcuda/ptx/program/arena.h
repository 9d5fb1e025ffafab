/* Memory that is freed together: of a compiled module, or of one function's parse. */
#pragma once

#include <stddef.h>

struct ptx_arena_chunk;

struct ptx_arena {
	struct ptx_arena_chunk *chunks; /* newest first */
	size_t used;                    /* of the newest */
};

/* Zeroed and aligned for any type. NULL: no memory. */
void *ptx_arena_take(struct ptx_arena *arena, size_t size);
/* NUL-terminated copy. */
char *ptx_arena_string(struct ptx_arena *arena, const char *text, size_t len);
void ptx_arena_deinit(struct ptx_arena *arena);
