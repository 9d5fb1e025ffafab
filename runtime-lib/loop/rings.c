#include "loop/rings.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

static size_t pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

uint32_t rings_places(uint32_t slots)
{
	uint32_t places = 8;

	/* One more than slots: an answer that closes the loop. */
	while (places < slots + 1)
		places *= 2;
	return places;
}

size_t rings_size(uint32_t slots, uint32_t ring)
{
	return pages(2 * sizeof(struct weir_loop_report)) +
	       pages(slots * sizeof(struct weir_loop_request)) +
	       2 * pages(ring * sizeof(uint64_t)) + 2 * pages(slots * sizeof(uint64_t)) +
	       (size_t)slots * WEIR_LOOP_INLINE;
}

static void *part(uint8_t **at, size_t bytes)
{
	void *begin = *at;

	*at += pages(bytes);
	return begin;
}

int rings_init(struct rings *rings, void *memory, uint32_t blocks, uint32_t callbacks)
{
	uint8_t *at = memory;

	if (!blocks || !callbacks || callbacks > WEIR_LOOP_CALLBACKS_MAX ||
	    blocks > WEIR_LOOP_SLOTS_MAX / callbacks)
		return -EINVAL;
	*rings = (struct rings){
		.blocks = blocks, .callbacks = callbacks, .slots = blocks * callbacks};
	rings->ring = rings_places(rings->slots);
	rings->reports = part(&at, 2 * sizeof(struct weir_loop_report));
	rings->requests = part(&at, rings->slots * sizeof(struct weir_loop_request));
	rings->doorbells = part(&at, rings->ring * sizeof(uint64_t));
	rings->answers = part(&at, rings->ring * sizeof(uint64_t));
	rings->values = part(&at, rings->slots * sizeof(uint64_t));
	rings->parts = part(&at, rings->slots * sizeof(uint64_t));
	rings->data = at;
	/* Not the data: there is much of it, and whoever reads it has written it before. */
	memset(memory, 0, (size_t)(at - (uint8_t *)memory));
	rings->busy = calloc(rings->slots, 1);
	return rings->busy ? 0 : -ENOMEM;
}

void rings_deinit(struct rings *rings)
{
	free(rings->busy);
	rings->busy = NULL;
}

/* 0, or why the request cannot be done. Its text and inline data lie beside the slot, so their
 * sizes are limited here; sizes of transfers by their kind. */
static int check(const struct weir_loop_request *request)
{
	switch (request->op) {
	case WEIR_LOOP_LISTEN:
		if (request->extra >> 32 > WEIR_LOOP_INLINE)
			return -EINVAL;
		/* fallthrough */
	case WEIR_LOOP_OPEN:
	case WEIR_LOOP_CONNECT:
		return request->size < WEIR_LOOP_INLINE ? 0 : -ENAMETOOLONG;
	case WEIR_LOOP_CALL:
		return request->size <= WEIR_LOOP_INLINE ? 0 : -EINVAL;
	case WEIR_LOOP_READ:
	case WEIR_LOOP_WRITE:
		if (request->offset > INT64_MAX - WEIR_LOOP_SIZE_MAX)
			return -EINVAL;
		return request->size <= WEIR_LOOP_SIZE_MAX ? 0 : -EINVAL;
	case WEIR_LOOP_RECEIVE:
	case WEIR_LOOP_SEND:
	case WEIR_LOOP_RECEIVE_ANY:
		return request->size <= WEIR_LOOP_SIZE_MAX ? 0 : -EINVAL;
	default:
		return request->op && request->op < WEIR_LOOP_OPS ? 0 : -ENOSYS;
	}
}

/* Text that the kernel wrote: it may have a NUL too early, which ends it. */
static void terminate(struct rings *rings, uint32_t slot, const struct weir_loop_request *request)
{
	if (request->op == WEIR_LOOP_OPEN || request->op == WEIR_LOOP_LISTEN ||
	    request->op == WEIR_LOOP_CONNECT)
		rings_data(rings, slot)[request->size] = 0;
}

/* Starts or answers the slot's request. Returns the batch's next slot. */
static uint16_t begin(struct rings *rings, uint32_t slot,
		      void (*start)(void *context, uint32_t slot,
				    const struct weir_loop_request *request),
		      void *context)
{
	struct weir_loop_request request;

	/* Once: the kernel may write it at any time. */
	memcpy(&request, &rings->requests[slot], sizeof(request));
	int error = check(&request);
	rings->busy[slot] = 1;
	if (error) {
		rings->refused++;
		rings_answer(rings, slot, error);
	} else {
		terminate(rings, slot, &request);
		start(context, slot, &request);
	}
	return request.next;
}

bool rings_take(struct rings *rings,
		void (*start)(void *context, uint32_t slot,
			      const struct weir_loop_request *request),
		void *context)
{
	uint64_t *place = &rings->doorbells[rings->batches & (rings->ring - 1)];
	uint64_t doorbell = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	uint32_t slot = (uint32_t)doorbell;

	if ((uint32_t)(doorbell >> 32) != rings->batches + 1)
		return false;
	rings->batches++;
	/* A slot that is busy, or none, ends the batch; so does one with more requests than slots.
	 */
	for (uint32_t n = 0; n < rings->slots && slot < rings->slots && !rings->busy[slot]; n++) {
		uint16_t next = begin(rings, slot, start, context);
		if (next == WEIR_LOOP_NO_SLOT)
			return true;
		slot = next;
	}
	rings->refused++;
	return true;
}

static void put(struct rings *rings, uint32_t slot, int64_t result)
{
	uint32_t lap = rings->given / rings->ring + 1;

	__atomic_store_n(&rings->answers[rings->given & (rings->ring - 1)],
			 WEIR_LOOP_ANSWER(slot, lap, result), __ATOMIC_RELEASE);
	rings->given++;
}

void rings_put_part(struct rings *rings, uint32_t slot, const void *data)
{
	__atomic_store_n(&rings->parts[slot], (uint64_t)(uintptr_t)data, __ATOMIC_RELAXED);
}

bool rings_has_part(const struct rings *rings, uint32_t slot, const void *data)
{
	return __atomic_load_n(&rings->parts[slot], __ATOMIC_ACQUIRE) == (uint64_t)(uintptr_t)data;
}

void rings_answer(struct rings *rings, uint32_t slot, int64_t result)
{
	rings->busy[slot] = 0;
	put(rings, slot, result);
}

void rings_close(struct rings *rings, uint32_t reason)
{
	put(rings, WEIR_LOOP_NO_SLOT, reason);
}
