#include "common/async-hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "weir/base.h"
#include "weir/error.h"

static void finish(struct async_hash *hash, int error)
{
	struct digest digest = {0};

	if (error == 0 && EVP_DigestFinal_ex(hash->context, digest.bytes, NULL) != 1)
		error = -EIO;
	async_hash_stop(hash);
	hash->done(hash, error, &digest);
}

/* A failed copy does not fail the hash; its owner reads copy_error. */
static void copy_piece(struct async_hash *hash, const uint8_t *piece, size_t size)
{
	for (size_t at = 0; at < size && hash->copy >= 0 && !hash->copy_error;) {
		ssize_t n = write(hash->copy, piece + at, size - at);
		if (n < 0 && errno != EINTR)
			hash->copy_error = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
}

static bool is_finished(struct async_hash *hash)
{
	while (hash->range < HASH_RANGES && !hash->ranges[hash->range].size)
		hash->range++;
	return hash->range == HASH_RANGES;
}

static void step(struct async_hash *hash)
{
	uint8_t *piece = hash->queue->piece;

	if (is_finished(hash)) {
		finish(hash, 0);
		return;
	}
	uint64_t left = hash->ranges[hash->range].size;
	ssize_t n = pread(hash->fd, piece, left < HASH_PIECE ? left : HASH_PIECE,
			  (off_t)hash->ranges[hash->range].offset);
	if (n <= 0) {
		if (n == 0 || errno != EINTR)
			finish(hash, n ? -errno : -EIO);
		return;
	}
	hash->ranges[hash->range].offset += (uint64_t)n;
	hash->ranges[hash->range].size -= (uint64_t)n;
	copy_piece(hash, piece, (size_t)n);
	if (EVP_DigestUpdate(hash->context, piece, (size_t)n) != 1)
		finish(hash, -EIO);
	else if (is_finished(hash))
		finish(hash, 0);
}

/* Hashes one piece of the first file and moves that file to the end of the queue. */
static void run(struct loop_timer *timer)
{
	struct hash_queue *queue = container_of(timer, struct hash_queue, timer);
	struct async_hash *first = queue->all;

	if (!first)
		return;
	DL_DELETE(queue->all, first);
	DL_APPEND(queue->all, first);
	step(first);
	if (queue->all)
		loop_timer_set(timer, 0, 0);
}

int hash_queue_init(struct hash_queue *queue, struct loop *loop)
{
	*queue = (struct hash_queue){.piece = malloc(HASH_PIECE)};
	if (!queue->piece)
		return error_origin(-ENOMEM);
	return loop_timer_init(&queue->timer, loop, run);
}

void hash_queue_deinit(struct hash_queue *queue)
{
	loop_timer_deinit(&queue->timer);
	free(take(queue->piece));
}

int async_hash_start(struct async_hash *hash, struct hash_queue *queue, const void *salt,
		     size_t size)
{
	hash->range = 0;
	hash->copy_error = 0;
	hash->context = EVP_MD_CTX_new();
	if (!hash->context)
		return error_origin(-ENOMEM);
	if (EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1 ||
	    EVP_DigestUpdate(hash->context, salt, size) != 1) {
		EVP_MD_CTX_free(take(hash->context));
		return error_origin(-EIO);
	}
	hash->queue = queue;
	if (!queue->all)
		loop_timer_set(&queue->timer, 0, 0);
	DL_APPEND(queue->all, hash);
	return 0;
}

void async_hash_stop(struct async_hash *hash)
{
	if (!hash->queue)
		return;
	/* The first element's prev is the last one.
	 * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	DL_DELETE(hash->queue->all, hash);
	hash->queue = NULL;
	EVP_MD_CTX_free(take(hash->context));
}

int digest_bytes(struct digest *out, const void *bytes, size_t size)
{
	return EVP_Digest(bytes, size, out->bytes, NULL, EVP_sha256(), NULL) == 1
		       ? 0
		       : error_origin(-EIO);
}

int digest_file(struct digest *out, int fd)
{
	uint8_t piece[16384];
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	bool good = hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1;
	off_t at = 0;
	ssize_t n = 1;

	while (good && (n = pread(fd, piece, sizeof(piece), at)) > 0) {
		good = EVP_DigestUpdate(hash, piece, (size_t)n) == 1;
		at += n;
	}
	int r = n < 0 ? -errno : 0;
	if (r == 0 && (!good || EVP_DigestFinal_ex(hash, out->bytes, NULL) != 1))
		r = -EIO;
	EVP_MD_CTX_free(hash);
	return r;
}

void digest_format(const struct digest *digest, char text[DIGEST_TEXT])
{
	for (size_t i = 0; i < sizeof(digest->bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", digest->bytes[i]);
}

bool digest_parse(struct digest *out, const char *text, size_t size)
{
	char again[DIGEST_TEXT];

	if (size != sizeof(again) - 1)
		return false;
	for (size_t i = 0; i < sizeof(out->bytes); i++)
		if (sscanf(text + 2 * i, "%2hhx", &out->bytes[i]) != 1)
			return false;
	/* sscanf() also takes signs, spaces and capitals. */
	digest_format(out, again);
	return memcmp(again, text, size) == 0;
}
