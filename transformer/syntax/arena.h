/* A bump allocator: what lives and dies together is freed together. Memory comes zeroed. It is the
 * only place of the transformer that asks for memory, together with text.c, and both have a
 * maximum: what a hostile text can make us take is bounded by its size.
 */
#pragma once

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* the newest first */
	size_t used;                /* bytes taken from the system */
	size_t max;                 /* and how many there may be */
};

void arena_init(struct arena *arena, size_t max);
void arena_deinit(struct arena *arena);
/* Forgets everything, keeps one chunk for the next user. */
void arena_reset(struct arena *arena);

/* NULL: no memory, or the maximum is reached. Aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t n,
		  size_t size); /* also NULL when n * size overflows */
/* A copy of @len bytes with a NUL behind. */
char *arena_text(struct arena *arena, const char *text, size_t len);

#define arena_new(arena, type) ((type *)arena_alloc(arena, sizeof(type)))
