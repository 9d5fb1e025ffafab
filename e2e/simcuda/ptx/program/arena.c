#include "simcuda/ptx/program/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64 * 1024)

struct ptx_arena_chunk {
	struct ptx_arena_chunk *next;
	size_t size;
	_Alignas(max_align_t) char data[];
};

void *ptx_arena_take(struct ptx_arena *arena, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);

	struct ptx_arena_chunk *chunk = arena->chunks;
	if (!chunk || chunk->size - arena->used < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		chunk = calloc(1, sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->size = room;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->used = 0;
	}
	void *taken = chunk->data + arena->used;
	arena->used += size;
	return taken;
}

char *ptx_arena_string(struct ptx_arena *arena, const char *text, size_t len)
{
	char *copy = ptx_arena_take(arena, len + 1);

	if (copy)
		memcpy(copy, text, len);
	return copy;
}

void ptx_arena_deinit(struct ptx_arena *arena)
{
	while (arena->chunks) {
		struct ptx_arena_chunk *next = arena->chunks->next;
		free(arena->chunks);
		arena->chunks = next;
	}
}
