#include "loop/staging.h"

#include <errno.h>
#include <stdlib.h>

#define UNITS_MAX (STAGING_BYTES / STAGING_UNIT)

uint32_t staging_pieces(uint32_t buffers)
{
	return buffers * (UNITS_MAX + STAGING_SMALL);
}

size_t staging_size(uint32_t buffers)
{
	return (size_t)buffers * (STAGING_BYTES + STAGING_SMALL * WEIR_LOOP_PART);
}

int staging_init(struct staging *staging, void *memory, uint32_t buffers)
{
	uint32_t units = buffers * UNITS_MAX;
	uint8_t *at = memory;

	*staging = (struct staging){.units = units, .idle = units};
	staging->piece = calloc(staging_pieces(buffers), sizeof(staging->piece[0]));
	if (!staging->piece)
		return -ENOMEM;
	for (uint32_t i = 0; i < units; i++, at += STAGING_UNIT)
		staging->piece[i].buffer = at;
	for (uint32_t i = units; i < staging_pieces(buffers); i++, at += WEIR_LOOP_PART) {
		staging->piece[i].buffer = at;
		staging_give(staging, &staging->piece[i]);
	}
	return 0;
}

void staging_deinit(struct staging *staging)
{
	free(staging->piece);
	staging->piece = NULL;
}

/* Idle units from @at on, @most at most. */
static uint32_t run_at(const struct staging *staging, uint32_t at, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && at + n < staging->units && staging->piece[at + n].state == PIECE_IDLE)
		n++;
	return n;
}

struct piece *staging_take(struct staging *staging, uint64_t bytes)
{
	uint32_t wanted = bytes > STAGING_BYTES - STAGING_UNIT
				  ? UNITS_MAX
				  : (uint32_t)((bytes + STAGING_UNIT - 1) / STAGING_UNIT);
	uint32_t best = 0, length = 0;

	/* The first run that is long enough, or else the first of the longest. */
	for (uint32_t i = 0; staging->idle && length < wanted && i < staging->units; i++) {
		uint32_t at = (staging->next + i) % staging->units;
		uint32_t n = run_at(staging, at, wanted);
		if (n > length) {
			best = at;
			length = n;
		}
	}
	if (!length)
		return NULL;
	struct piece *piece = &staging->piece[best];
	for (uint32_t i = 0; i < length; i++)
		piece[i].state = i ? PIECE_BEHIND : PIECE_IO;
	piece->units = length;
	staging->idle -= length;
	staging->next = (best + length) % staging->units;
	return piece;
}

struct piece *staging_take_small(struct staging *staging)
{
	struct piece *piece = staging->small;

	if (piece)
		staging->small = piece->next;
	return piece;
}

void staging_give(struct staging *staging, struct piece *piece)
{
	if (!piece->units) {
		piece->next = staging->small;
		staging->small = piece;
		return;
	}
	staging->idle += piece->units;
	for (uint32_t i = 0; i < piece->units; i++)
		piece[i].state = PIECE_IDLE;
}

struct piece *staging_behind(const struct staging *staging, const struct piece *piece)
{
	uint32_t at = (uint32_t)(piece - staging->piece) + piece->units;

	return piece->units && at < staging->units ? &staging->piece[at] : NULL;
}
