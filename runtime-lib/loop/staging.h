/* Pinned memory that data of transfers goes through, between files or sockets and the GPU.
 *
 * Large pieces have 1 to 4 units side by side. Those that are taken one behind the other lie side
 * by side where possible, so that one copy can move several (copies.c). Small pieces are for reads
 * that the blocks copy themselves. */
#pragma once

#include "loop/io.h"

#include <cuda.h>

#include "weir/loop-abi.h"

#define STAGING_UNIT  (256u << 10)
#define STAGING_BYTES (1u << 20) /* of a large piece, at most; of a buffer of the options */
#define STAGING_SMALL 4u         /* small pieces for each such buffer */

enum piece_state { PIECE_IDLE, PIECE_BEHIND, PIECE_IO, PIECE_READY, PIECE_COPY };

/* Memory, and the part of a transfer that it has. */
struct piece {
	struct io io;
	uint8_t *buffer;
	uint32_t units; /* 0: it is a small one, of WEIR_LOOP_PART bytes */
	CUevent event;  /* of each large one: the end of a copy that begins with it */
	uint32_t slot;
	uint64_t offset, size, filled;
	enum piece_state state; /* PIECE_BEHIND: a unit of the piece before it */
	struct piece *next;     /* of whatever list it is in */
	struct piece *joined;   /* of a copy of several: the next one */
};

struct staging {
	struct piece *piece; /* one for each unit, then the small ones */
	uint32_t units, idle;
	uint32_t next; /* the unit behind the piece that was taken last */
	struct piece *small;
};

uint32_t staging_pieces(uint32_t buffers);
size_t staging_size(uint32_t buffers);
/* @memory: staging_size() bytes; stays the caller's. -ENOMEM. */
int staging_init(struct staging *staging, void *memory, uint32_t buffers);
void staging_deinit(struct staging *staging);

/* A piece for @bytes, at least 1, or STAGING_BYTES if they are more. NULL: there is no room for it
 * side by side. */
struct piece *staging_take(struct staging *staging, uint64_t bytes);
struct piece *staging_take_small(struct staging *staging);
void staging_give(struct staging *staging, struct piece *piece);

/* The piece, or the idle unit, whose memory ends where that of @piece begins; or begins where it
 * ends. NULL: there is none. */
struct piece *staging_before(const struct staging *staging, const struct piece *piece);
struct piece *staging_behind(const struct staging *staging, const struct piece *piece);
