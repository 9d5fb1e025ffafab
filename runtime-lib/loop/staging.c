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

/* The next run that is long enough. `units`: there is none. */
static uint32_t find_run(const struct staging *staging, uint32_t wanted)
{
	for (uint32_t i = 0; wanted <= staging->idle && i < staging->units;) {
		uint32_t at = (staging->next + i) % staging->units;
		uint32_t n = run_at(staging, at, wanted);
		if (n == wanted)
			return at;
		i += at + n < staging->units ? n + 1 : n; /* behind a busy one, or from 0 on */
	}
	return staging->units;
}

/* What is too short is left until its neighbours are idle, too. If it were taken, pieces would soon
 * all be short, and so would be the copies. */
struct piece *staging_take(struct staging *staging, uint64_t bytes)
{
	uint32_t wanted = bytes > STAGING_BYTES - STAGING_UNIT
				  ? UNITS_MAX
				  : (uint32_t)((bytes + STAGING_UNIT - 1) / STAGING_UNIT);
	uint32_t at = find_run(staging, wanted);

	if (at == staging->units)
		return NULL;
	struct piece *piece = &staging->piece[at];
	for (uint32_t i = 0; i < wanted; i++)
		piece[i].state = i ? PIECE_BEHIND : PIECE_IO;
	piece->units = wanted;
	staging->idle -= wanted;
	staging->next = (at + wanted) % staging->units;
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

struct piece *staging_before(const struct staging *staging, const struct piece *piece)
{
	uint32_t at = (uint32_t)(piece - staging->piece);

	if (!piece->units || !at)
		return NULL;
	while (staging->piece[--at].state == PIECE_BEHIND)
		continue;
	return &staging->piece[at];
}

struct piece *staging_behind(const struct staging *staging, const struct piece *piece)
{
	uint32_t at = (uint32_t)(piece - staging->piece) + piece->units;

	return piece->units && at < staging->units ? &staging->piece[at] : NULL;
}
