/* Timers of the kernel: a heap by the time when they are due. */
#include "loop/inside.h"

static bool sooner(const struct weir_loop *loop, uint32_t a, uint32_t b)
{
	return loop->slots[loop->timers[a]].due < loop->slots[loop->timers[b]].due;
}

static void swap(struct weir_loop *loop, uint32_t a, uint32_t b)
{
	uint32_t slot = loop->timers[a];

	loop->timers[a] = loop->timers[b];
	loop->timers[b] = slot;
}

void timers_add(struct weir_loop *loop, struct slot *slot, uint64_t due)
{
	uint32_t at = loop->n_timers++;

	slot->due = due;
	loop->timers[at] = slot_number(loop, slot);
	for (; at && sooner(loop, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(loop, at, (at - 1) / 2);
}

static void remove_first(struct weir_loop *loop)
{
	uint32_t at = 0, next;

	loop->timers[0] = loop->timers[--loop->n_timers];
	while ((next = 2 * at + 1) < loop->n_timers) {
		if (next + 1 < loop->n_timers && sooner(loop, next + 1, next))
			next++;
		if (!sooner(loop, next, at))
			return;
		swap(loop, next, at);
		at = next;
	}
}

bool timers_look(struct weir_loop *loop, uint64_t now)
{
	bool some = false;

	while (loop->n_timers && loop->slots[loop->timers[0]].due <= now) {
		struct slot *slot = &loop->slots[loop->timers[0]];
		remove_first(loop);
		loop_answer(loop, slot, 0);
		some = true;
	}
	return some;
}

uint64_t timers_next(const struct weir_loop *loop)
{
	return loop->n_timers ? loop->slots[loop->timers[0]].due : UINT64_MAX;
}
