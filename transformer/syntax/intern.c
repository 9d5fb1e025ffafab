/* A chained hash table that doubles when it is full. The seed is fixed, and CHAIN_MAX bounds the
 * cost of a text of colliding names: longer chains stop as if out of memory. */
#include "syntax/intern.h"

#include <string.h>

#define ROOM_MIN  256u
#define CHAIN_MAX 1024u

struct intern_entry {
	struct intern_entry *next;
	void *slot;
	uint64_t hash;
	size_t len;
	char text[];
};

void intern_init(struct intern *intern, struct arena *arena)
{
	*intern = (struct intern){.arena = arena};
}

/* FNV-1a, then high bits mixed into the low ones. */
static uint64_t hash_text(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t k = 0; k < len; k++)
		hash = (hash ^ (unsigned char)text[k]) * 0x100000001b3u;
	return hash ^ hash >> 29;
}

static void grow(struct intern *intern)
{
	size_t room = intern->room ? 2 * intern->room : ROOM_MIN;
	struct intern_entry **buckets = arena_array(intern->arena, room, sizeof(*buckets));

	for (size_t k = 0; k < intern->room; k++) {
		for (struct intern_entry *e = intern->buckets[k], *next; e; e = next) {
			struct intern_entry **bucket = &buckets[e->hash & (room - 1)];

			next = e->next;
			e->next = *bucket;
			*bucket = e;
		}
	}
	intern->buckets = buckets;
	intern->room = room;
}

static struct intern_entry *find(const struct intern *intern, uint64_t hash, const char *text,
				 size_t len, unsigned *chain)
{
	*chain = 0;
	if (!intern->room)
		return NULL;
	for (struct intern_entry *e = intern->buckets[hash & (intern->room - 1)]; e; e = e->next) {
		++*chain;
		if (e->hash == hash && e->len == len && !memcmp(e->text, text, len))
			return e;
	}
	return NULL;
}

const char *intern_find(const struct intern *intern, const char *text, size_t len)
{
	unsigned chain;
	const struct intern_entry *e = find(intern, hash_text(text, len), text, len, &chain);

	return e ? e->text : NULL;
}

const char *intern_text(struct intern *intern, const char *text, size_t len)
{
	unsigned chain;
	uint64_t hash = hash_text(text, len);
	struct intern_entry *e = find(intern, hash, text, len, &chain);

	if (e)
		return e->text;
	if (chain > CHAIN_MAX)
		arena_exhausted(intern->arena);
	if (intern->n >= intern->room)
		grow(intern);
	e = arena_alloc(intern->arena, sizeof(*e) + len + 1);
	memcpy(e->text, text, len);
	e->len = len;
	e->hash = hash;
	e->next = intern->buckets[hash & (intern->room - 1)];
	intern->buckets[hash & (intern->room - 1)] = e;
	intern->n++;
	return e->text;
}

const char *intern_string(struct intern *intern, const char *text)
{
	return intern_text(intern, text, strlen(text));
}

char *intern_unlisted(struct arena *arena, size_t size)
{
	struct intern_entry *e = arena_alloc(arena, sizeof(*e) + size);

	return e->text;
}

void **intern_slot(const char *text)
{
	return &((struct intern_entry *)(void *)(text - offsetof(struct intern_entry, text)))->slot;
}
