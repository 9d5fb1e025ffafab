/* Reads and hashes files in pieces, one piece each turn of the loop, the readings in turn: however
 * large they are, nobody else in the agent waits for longer than a piece takes. */
#pragma once

#include <stdint.h>

#include <openssl/evp.h>

#include "weir/loop.h"

#define READING_PIECE  (64u << 10)
#define READING_RANGES 2

struct digest {
	uint8_t bytes[32]; /* SHA-256 */
};

struct readings {
	struct loop_timer turn;
	struct reading *all;
	uint8_t *piece;
};

struct reading;
/* @error: 0, or what reading said; -EIO where the file ended early. The reading is over. */
typedef void reading_done_fn(struct reading *reading, int error, const struct digest *digest);

/* To be embedded. Zeroed: not under way. */
struct reading {
	struct readings *readings;
	struct reading *prev, *next;
	EVP_MD_CTX *hash;
	int fd, copy; /* copy: what is read is written there, too; -1: no */
	int copy_error;
	struct {
		uint64_t offset, size;
	} ranges[READING_RANGES];
	unsigned range;
	reading_done_fn *done;
};

int readings_init(struct readings *readings, struct loop *loop);
void readings_deinit(struct readings *readings);

/* Hashes @salt and then the ranges of @reading, whose fd, copy, ranges and done are set. The digest
 * comes by done(), later. A negative errno: it does not start. */
int reading_start(struct reading *reading, struct readings *readings, const void *salt,
		  size_t size);
/* Accepts one that is over. */
void reading_stop(struct reading *reading);

/* The whole of @fd at once: for the start of the agent. */
int digest_file(struct digest *out, int fd);
/* 64 hexadecimal digits and NUL. */
#define DIGEST_TEXT 65
void digest_format(const struct digest *digest, char text[DIGEST_TEXT]);
bool digest_parse(struct digest *out, const char *text, size_t size);
