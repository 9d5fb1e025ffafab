/* A kernel writes anything into the memory that it shares with the host, at any time. Input: a
 * number of blocks and of callbacks, then steps: a byte that says what is done, and what it is done
 * with. */
#include "loop/address.h"
#include "loop/rings.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static bool next(struct input *input, void *out, size_t size)
{
	if (input->left < size)
		return false;
	memcpy(out, input->at, size);
	input->at += size;
	input->left -= size;
	return true;
}

struct world {
	struct rings rings;
	uint8_t *open; /* slots that were started and not answered */
};

/* Its data or text is beside the slot. */
static bool is_inline(uint16_t op)
{
	return op == WEIR_LOOP_OPEN || op == WEIR_LOOP_LISTEN || op == WEIR_LOOP_CONNECT ||
	       op == WEIR_LOOP_CALL;
}

static void start(void *context, uint32_t slot, const struct weir_loop_request *request)
{
	struct world *w = context;
	struct sockaddr_storage address;
	socklen_t size;

	if (slot >= w->rings.slots || w->open[slot] || !request->op || request->op >= WEIR_LOOP_OPS)
		abort();
	if (is_inline(request->op) && request->size > WEIR_LOOP_INLINE)
		abort();
	w->open[slot] = 1;
	if (request->op == WEIR_LOOP_CONNECT)
		address_parse((const char *)rings_data(&w->rings, slot), &address, &size);
}

static void take(struct world *w)
{
	uint32_t given = w->rings.given;

	rings_take(&w->rings, start, w);
	/* More answers than slots would overwrite answers that nobody has read. */
	if (w->rings.given - given > w->rings.slots)
		abort();
}

static void step(struct world *w, struct input *input, uint8_t what, size_t bytes, uint8_t *memory)
{
	uint32_t offset, slot;
	uint8_t value[64];

	switch (what % 4) {
	case 0: /* anything anywhere */
		if (next(input, &offset, sizeof(offset)) && next(input, value, sizeof(value)))
			memcpy(memory + offset % (bytes - sizeof(value)), value, sizeof(value));
		break;
	case 1: /* a doorbell that fits */
		if (next(input, &slot, sizeof(slot)))
			w->rings.doorbells[w->rings.batches & (w->rings.ring - 1)] =
				WEIR_LOOP_DOORBELL(slot, w->rings.batches + 1);
		break;
	case 2:
		take(w);
		break;
	case 3:
		for (slot = 0; slot < w->rings.slots; slot++) {
			if (w->open[slot])
				rings_answer(&w->rings, slot, what);
			w->open[slot] = 0;
		}
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct world w = {0};
	uint8_t shape[2], what;

	if (!next(&input, shape, sizeof(shape)))
		return 0;
	uint32_t blocks = shape[0] % 8 + 1, callbacks = shape[1] % 8 + 1,
		 slots = blocks * callbacks;
	size_t bytes = rings_size(slots, rings_places(slots));
	uint8_t *memory = calloc(1, bytes);
	w.open = calloc(slots, 1);
	if (memory && w.open && !rings_init(&w.rings, memory, blocks, callbacks)) {
		while (next(&input, &what, 1))
			step(&w, &input, what, bytes, memory);
		take(&w);
		rings_deinit(&w.rings);
	}
	free(w.open);
	free(memory);
	return 0;
}
