/* A bump allocator: objects of one lifetime are freed together. Memory is zeroed. Only arenas and
 * text.c allocate memory in the transformer. Both have a maximum, so the size of a hostile text
 * bounds the memory that it can cost. */
#pragma once

#include "syntax/diag.h"

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t used;                /* bytes allocated from the system */
	size_t max;                 /* limit of `used` */
	struct diag *diag;
};

void arena_init(struct arena *arena, size_t max, struct diag *diag);
void arena_deinit(struct arena *arena);
/* Frees all objects and keeps one chunk for reuse. */
void arena_reset(struct arena *arena);

/* These stop with -ENOMEM (diag.h) if memory runs out or the maximum is reached. */
void arena_exhausted(const struct arena *arena) __attribute__((noreturn));
void *arena_alloc(struct arena *arena, size_t size); /* aligned for any type */
void *arena_array(struct arena *arena, size_t n, size_t size);
/* Makes room for one more than the @n items of an array of *@room: the array, perhaps moved. */
void *arena_grow(struct arena *arena, void *items, size_t n, size_t *room, size_t size);
/* A NUL-terminated copy of @len bytes. */
char *arena_text(struct arena *arena, const char *text, size_t len);

#define arena_new(arena, type) ((type *)arena_alloc(arena, sizeof(type)))
