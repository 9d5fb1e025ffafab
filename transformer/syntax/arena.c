#include "syntax/arena.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN (64u << 10)
#define ALIGNMENT 16u

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, room;
	_Alignas(ALIGNMENT) char data[];
};

void arena_init(struct arena *arena, size_t max, struct diag *diag)
{
	*arena = (struct arena){.max = max, .diag = diag};
}

void arena_deinit(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		free(chunk);
	}
	arena->used = 0;
}

void arena_reset(struct arena *arena)
{
	struct arena_chunk *kept = arena->chunks;

	if (!kept)
		return;
	arena->chunks = kept->next;
	arena_deinit(arena);
	kept->next = NULL;
	kept->used = 0;
	arena->chunks = kept;
	arena->used = kept->room;
}

void arena_exhausted(const struct arena *arena)
{
	diag_stop(arena->diag, -ENOMEM, (struct position){0}, "no memory");
}

/* Chunks double in size to keep their number small. */
static struct arena_chunk *new_chunk(struct arena *arena, size_t size)
{
	size_t left = arena->max - arena->used, room = arena->used;
	struct arena_chunk *chunk;

	if (room < CHUNK_MIN)
		room = CHUNK_MIN;
	if (room < size)
		room = size;
	if (room > left)
		room = left;
	if (room < size)
		arena_exhausted(arena);
	chunk = malloc(sizeof(*chunk) + room);
	if (!chunk)
		arena_exhausted(arena);
	chunk->room = room;
	chunk->used = 0;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->used += room;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk = arena->chunks;
	void *p;

	if (size > SIZE_MAX / 2)
		arena_exhausted(arena);
	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!chunk || chunk->room - chunk->used < size)
		chunk = new_chunk(arena, size);
	p = chunk->data + chunk->used;
	chunk->used += size;
	return memset(p, 0, size);
}

void *arena_array(struct arena *arena, size_t n, size_t size)
{
	return arena_alloc(arena, size && n > SIZE_MAX / size ? SIZE_MAX : n * size);
}

void *arena_grow(struct arena *arena, void *items, size_t n, size_t *room, size_t size)
{
	void *more;

	if (n < *room)
		return items;
	*room = n ? 2 * n : 8;
	more = arena_array(arena, *room, size);
	return n ? memcpy(more, items, n * size) : more;
}

char *arena_text(struct arena *arena, const char *text, size_t len)
{
	return memcpy(arena_alloc(arena, len + 1), text, len);
}
