/* What the agent knows of compile requests, found by a hash of all that an object is made from.
 *
 * Objects are files on disk. A file's name is KEY-CONTENT, two SHA-256 in hexadecimal: of the input
 * and of the file itself. It appears by rename, whole or not at all; the hash of the content shows
 * what a crash of the machine damaged. The cache is bounded in bytes and drops the file that was
 * not used for longest. It survives the agent, which alone writes the folder; clients get read-only
 * descriptors.
 *
 * Failures are remembered while the agent lives, because every process that starts asks again, and
 * some requests use all their time before they fail. */
#pragma once

#include <stdint.h>
#include <time.h>
#include <uthash.h>

#include "common/async-hash.h"
#include "common/folder.h"

#include "weir/protocol.h"

#define CACHE_FAILURES_MAX 256
/* Files of the folder whose names begin so are not the cache's. */
#define CACHE_NEIGHBOUR "profiles"

struct cache_entry {
	struct digest key, content;
	uint64_t size;
	struct timespec used; /* by an earlier agent */
	UT_hash_handle hh;
	struct cache_entry *prev, *next; /* least recently used first */
};

struct cache_failure {
	struct digest key;
	enum weir_compile_status status;
	char text[sizeof(((struct weir_compiled *)0)->text)];
	UT_hash_handle hh;
	struct cache_failure *prev, *next; /* oldest first */
};

struct cache {
	struct folder folder;
	struct cache_entry *all, *by_use;
	uint64_t bytes, max; /* in whole blocks */
	uint64_t evicted;
	unsigned drafts; /* number of names used */
	struct cache_failure *failures, *failures_by_age;
};

/* Finds the objects that an earlier agent left in @path. Logs errors. */
int cache_init(struct cache *cache, const char *path, uint64_t max);
void cache_deinit(struct cache *cache);

/* Marks the entry as used. NULL: not there. */
struct cache_entry *cache_find(struct cache *cache, const struct digest *key);
/* A read-only descriptor, or a negative errno. -EIO: the file is missing or another one. Other
 * errors say nothing about the object. -EWOULDBLOCK: a client has a lease on it; cache_keep() will
 * replace it. */
int cache_open(const struct cache *cache, const struct cache_entry *entry);
/* Removes the entry and its file. */
void cache_drop(struct cache *cache, struct cache_entry *entry);

/* A file that is being written. */
struct cache_draft {
	int fd; /* -1: no draft */
	unsigned number;
	uint64_t size;
};

/* Makes room for @size bytes. -EFBIG: larger than the cache. */
int cache_draft(struct cache *cache, uint64_t size, struct cache_draft *out);
/* Each ends the draft. cache_keep() makes it an entry, or removes the file if it fails. */
int cache_keep(struct cache *cache, struct cache_draft *draft, const struct digest *key,
	       const struct digest *content);
void cache_discard(struct cache *cache, struct cache_draft *draft);

/* NULL: no failure is known. */
const struct cache_failure *cache_find_failure(const struct cache *cache, const struct digest *key);
/* Does nothing if there is no memory. */
void cache_add_failure(struct cache *cache, const struct digest *key,
		       enum weir_compile_status status, const char *text);
