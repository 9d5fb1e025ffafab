#include "common/reading.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "weir/base.h"
#include "weir/error.h"

static void finish(struct reading *reading, int error)
{
	struct digest digest = {0};

	if (error == 0 && EVP_DigestFinal_ex(reading->hash, digest.bytes, NULL) != 1)
		error = -EIO;
	reading_stop(reading);
	reading->done(reading, error, &digest);
}

/* A copy that fails does not fail the reading: its owner looks at copy_error. */
static void copy_piece(struct reading *reading, const uint8_t *piece, size_t size)
{
	for (size_t at = 0; at < size && reading->copy >= 0 && !reading->copy_error;) {
		ssize_t n = write(reading->copy, piece + at, size - at);
		if (n < 0 && errno != EINTR)
			reading->copy_error = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
}

static bool is_over(struct reading *reading)
{
	while (reading->range < READING_RANGES && !reading->ranges[reading->range].size)
		reading->range++;
	return reading->range == READING_RANGES;
}

static void step(struct reading *reading)
{
	uint8_t *piece = reading->readings->piece;

	if (is_over(reading)) {
		finish(reading, 0);
		return;
	}
	uint64_t left = reading->ranges[reading->range].size;
	ssize_t n = pread(reading->fd, piece, left < READING_PIECE ? left : READING_PIECE,
			  (off_t)reading->ranges[reading->range].offset);
	if (n <= 0) {
		if (n == 0 || errno != EINTR)
			finish(reading, n ? -errno : -EIO);
		return;
	}
	reading->ranges[reading->range].offset += (uint64_t)n;
	reading->ranges[reading->range].size -= (uint64_t)n;
	copy_piece(reading, piece, (size_t)n);
	if (EVP_DigestUpdate(reading->hash, piece, (size_t)n) != 1)
		finish(reading, -EIO);
	else if (is_over(reading))
		finish(reading, 0);
}

/* One piece of the first, which then stands behind the others. */
static void turn(struct loop_timer *timer)
{
	struct readings *readings = container_of(timer, struct readings, turn);
	struct reading *first = readings->all;

	if (!first)
		return;
	DL_DELETE(readings->all, first);
	DL_APPEND(readings->all, first);
	step(first);
	if (readings->all)
		loop_timer_set(timer, 0, 0);
}

int readings_init(struct readings *readings, struct loop *loop)
{
	*readings = (struct readings){.piece = malloc(READING_PIECE)};
	if (!readings->piece)
		return error_origin(-ENOMEM);
	return loop_timer_init(&readings->turn, loop, turn);
}

void readings_deinit(struct readings *readings)
{
	loop_timer_deinit(&readings->turn);
	free(take(readings->piece));
}

int reading_start(struct reading *reading, struct readings *readings, const void *salt, size_t size)
{
	reading->range = 0;
	reading->copy_error = 0;
	reading->hash = EVP_MD_CTX_new();
	if (!reading->hash)
		return error_origin(-ENOMEM);
	if (EVP_DigestInit_ex(reading->hash, EVP_sha256(), NULL) != 1 ||
	    EVP_DigestUpdate(reading->hash, salt, size) != 1) {
		EVP_MD_CTX_free(take(reading->hash));
		return error_origin(-EIO);
	}
	reading->readings = readings;
	if (!readings->all)
		loop_timer_set(&readings->turn, 0, 0);
	DL_APPEND(readings->all, reading);
	return 0;
}

void reading_stop(struct reading *reading)
{
	if (!reading->readings)
		return;
	/* The first one's prev is the last. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	DL_DELETE(reading->readings->all, reading);
	reading->readings = NULL;
	EVP_MD_CTX_free(take(reading->hash));
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

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool digest_parse(struct digest *out, const char *text, size_t size)
{
	if (size != 2 * sizeof(out->bytes))
		return false;
	for (size_t i = 0; i < sizeof(out->bytes); i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		out->bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
