/* Hashes files on the event loop: one piece of one file per loop iteration, the files round robin.
 * A large file therefore delays other work of the agent by at most one piece. */
#pragma once

#include <stdint.h>

#include <openssl/evp.h>

#include "weir/loop.h"

#define HASH_PIECE  (64u << 10)
#define HASH_RANGES 2

struct digest {
	uint8_t bytes[32]; /* SHA-256 */
};

struct hash_queue {
	struct loop_timer timer;
	struct async_hash *all;
	uint8_t *piece;
};

struct async_hash;
/* Called when @hash is finished. @error: 0, or the read's negative errno; -EIO: the file is shorter
 * than its ranges. */
typedef void async_hash_done_fn(struct async_hash *hash, int error, const struct digest *digest);

/* Embedded in its owner. Zeroed: not started. */
struct async_hash {
	struct hash_queue *queue;
	struct async_hash *prev, *next;
	EVP_MD_CTX *context;
	int fd;
	int copy; /* receives a copy of the bytes; -1: none */
	int copy_error;
	struct {
		uint64_t offset, size;
	} ranges[HASH_RANGES];
	unsigned range;
	async_hash_done_fn *done;
};

int hash_queue_init(struct hash_queue *queue, struct loop *loop);
void hash_queue_deinit(struct hash_queue *queue);

/* Hashes @salt, then @hash->ranges of @hash->fd, and calls @hash->done later. The caller has set
 * fd, copy, ranges and done. A negative errno: not started. */
int async_hash_start(struct async_hash *hash, struct hash_queue *queue, const void *salt,
		     size_t size);
/* Also for a hash that is finished or was never started. */
void async_hash_stop(struct async_hash *hash);

/* Of a few bytes in memory. 0 or -EIO. */
int digest_bytes(struct digest *out, const void *bytes, size_t size);
/* Hashes all of @fd and blocks; only for the agent's start. */
int digest_file(struct digest *out, int fd);
/* 64 hexadecimal digits and NUL. */
#define DIGEST_TEXT 65
void digest_format(const struct digest *digest, char text[DIGEST_TEXT]);
bool digest_parse(struct digest *out, const char *text, size_t size);
