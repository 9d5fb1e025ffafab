/* Objects on disk, found by what they were made from. A file is called KEY-CONTENT, two SHA-256 in
 * hexadecimal: of what went in, and of what the file holds. It comes into being by rename, whole or
 * not at all as far as the kernel lives; what a crash of the machine left of it, its name tells.
 *
 * Bounded in bytes; the file that was not used for longest goes first. Survives the agent. The
 * agent alone writes the folder; clients get descriptors that only read. */
#pragma once

#include <stdint.h>
#include <uthash.h>

#include "common/folder.h"
#include "common/async-hash.h"

struct cache_entry {
	struct digest key, content;
	uint64_t size;
	UT_hash_handle hh;
	struct cache_entry *prev, *next; /* by use, the oldest first */
};

struct cache {
	struct folder folder;
	struct cache_entry *all, *by_use;
	uint64_t bytes, max; /* as the files' blocks are counted */
	uint64_t evicted;
	unsigned drafts; /* names given out */
};

/* Takes over what an earlier agent left in @path. Logs what fails. */
int cache_init(struct cache *cache, const char *path, uint64_t max);
void cache_deinit(struct cache *cache);

/* NULL: not there. It counts as used now. */
struct cache_entry *cache_find(struct cache *cache, const struct digest *key);
/* A descriptor that only reads; or a negative errno: also where the file has another size. */
int cache_open(const struct cache *cache, const struct cache_entry *entry);
/* Out of the cache, and off the disk. */
void cache_drop(struct cache *cache, struct cache_entry *entry);

/* A file that becomes an entry, or nothing. */
struct cache_draft {
	int fd; /* to be written; -1: none */
	unsigned number;
	uint64_t size;
};

/* Makes room for @size bytes first. -EFBIG: the whole cache would be too small. */
int cache_draft(struct cache *cache, uint64_t size, struct cache_draft *out);
/* Each ends the draft. Where keeping it fails, nothing is left of it. */
int cache_keep(struct cache *cache, struct cache_draft *draft, const struct digest *key,
	       const struct digest *content);
void cache_discard(struct cache *cache, struct cache_draft *draft);
