/* The table of handles. A handle is a number with the type, the table index and the index's
 * generation, so that stale and invented handles are found without following a pointer. */
#include "simcuda/driver/driver.h"

#include <stdlib.h>

#define CHUNK  1024u
#define CHUNKS 1024u /* a million handles */

/* Printed, it looks like an address: low 4 bits 0, then 20 bits of index, 16 bits of generation, 4
 * bits of type, and a mark. */
#define MARK (1ull << 46)

struct place {
	uint64_t handle; /* 0: free */
	void *object;
	uint16_t generation;
	uint32_t next_free;
};

static struct place *chunks[CHUNKS];
static uint32_t n_places;
static uint32_t first_free = UINT32_MAX;

static struct place *place(uint32_t index)
{
	return &chunks[index / CHUNK][index % CHUNK];
}

static bool grow(void)
{
	if (n_places == CHUNK * CHUNKS)
		return false;
	chunks[n_places / CHUNK] = calloc(CHUNK, sizeof(struct place));
	if (!chunks[n_places / CHUNK])
		return false;
	for (uint32_t i = CHUNK; i-- > 0;) {
		place(n_places + i)->next_free = first_free;
		first_free = n_places + i;
	}
	n_places += CHUNK;
	return true;
}

void *handle_new(enum handle_type type, void *object)
{
	uint32_t index;
	struct place *p;

	if (first_free == UINT32_MAX && !grow())
		return NULL;
	index = first_free;
	p = place(index);
	first_free = p->next_free;
	p->generation++;
	p->object = object;
	p->handle = MARK | (uint64_t)type << 40 | (uint64_t)p->generation << 24 | index << 4;
	return (void *)(uintptr_t)p->handle;
}

static struct place *find(const void *handle)
{
	uint64_t value = (uintptr_t)handle;
	uint32_t index = value >> 4 & 0xfffff;

	if (!(value & MARK) || index >= n_places || place(index)->handle != value)
		return NULL;
	return place(index);
}

void handle_free(void *handle)
{
	struct place *p = find(handle);

	if (!p)
		return;
	p->handle = 0;
	p->object = NULL;
	p->next_free = first_free;
	first_free = (uint32_t)((uintptr_t)handle >> 4 & 0xfffff);
}

void *handle_get(enum handle_type type, const void *handle)
{
	const struct place *p = find(handle);

	return p && (p->handle >> 40 & 0xf) == (uint64_t)type ? p->object : NULL;
}
