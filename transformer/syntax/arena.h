/* A bump allocator: objects of one lifetime are freed together. Memory is zeroed. Only arenas and
 * text.c allocate memory in the transformer. Both have a maximum, so the size of a hostile text
 * bounds the memory that it can cost. */
#pragma once

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t used;                /* bytes allocated from the system */
	size_t max;                 /* limit of `used` */
};

void arena_init(struct arena *arena, size_t max);
void arena_deinit(struct arena *arena);
/* Frees all objects and keeps one chunk for reuse. */
void arena_reset(struct arena *arena);

/* NULL: out of memory, or the maximum is reached. Aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t n, size_t size); /* NULL also if n * size overflows */
/* A NUL-terminated copy of @len bytes. */
char *arena_text(struct arena *arena, const char *text, size_t len);

#define arena_new(arena, type) ((type *)arena_alloc(arena, sizeof(type)))
