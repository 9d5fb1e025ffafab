/* The host's end of the memory that a loop shares with its kernel (weir/loop-abi.h). The kernel may
 * write anything there: what comes out of here is checked and copied. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/loop-abi.h"

struct rings {
	uint32_t blocks, callbacks, slots;
	uint32_t ring; /* places */

	/* Host memory that the kernel sees; the loop's. */
	struct weir_loop_request *requests;
	uint64_t *doorbells, *answers, *values, *parts;
	uint8_t *data;
	struct weir_loop_report *reports; /* two */

	uint32_t batches; /* doorbells taken */
	uint32_t given;   /* answers put */
	uint8_t *busy;    /* of each slot: it has a request */
	uint64_t refused;
};

/* How much memory the shared part takes, and how it is divided. */
size_t rings_size(uint32_t slots, uint32_t ring);

/* @memory: zeroed, rings_size() bytes, aligned to a page; stays the caller's. -EINVAL, -ENOMEM. */
int rings_init(struct rings *rings, void *memory, uint32_t blocks, uint32_t callbacks);
void rings_deinit(struct rings *rings);

/* Places that rings of @slots slots have. */
uint32_t rings_places(uint32_t slots);

/* Takes the next batch, if there is one, and calls @start(@context, slot, request) for each good
 * request in it, in order. Each must be answered once. False: there was none. */
bool rings_take(struct rings *rings,
		void (*start)(void *context, uint32_t slot,
			      const struct weir_loop_request *request),
		void *context);

/* Before the answer: its data is at @data, until rings_has_part() is false. */
void rings_put_part(struct rings *rings, uint32_t slot, const void *data);
bool rings_has_part(const struct rings *rings, uint32_t slot, const void *data);

/* Answers the slot's request. */
void rings_answer(struct rings *rings, uint32_t slot, int64_t result);
/* The blocks leave: @reason is an enum weir_loop_close. Once until they have left. */
void rings_close(struct rings *rings, uint32_t reason);

static inline uint8_t *rings_data(const struct rings *rings, uint32_t slot)
{
	return rings->data + (size_t)slot * WEIR_LOOP_INLINE;
}
