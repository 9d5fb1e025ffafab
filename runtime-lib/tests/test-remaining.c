/* What tickets say of a launch: how much of it is done at least, and at most. */
#include "remaining.h"

#include "weir/base.h"
#include "weir/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define WORKERS 32u

static struct weir_persistent cut(uint32_t blocks, uint32_t chunk, int even,
				  enum weir_ticket_order order)
{
	struct weir_persistent hidden = {.grid = {blocks, 1, 1}, .blocks = blocks};

	weir_cut(&hidden, chunk, WORKERS, even, order);
	return hidden;
}

/* As pass-tickets.c does it. */
static uint32_t size_of(const struct weir_persistent *hidden, uint32_t ticket)
{
	uint32_t left = hidden->blocks - weir_blocks_before(hidden, ticket);
	uint32_t size = hidden->coarse && ticket >= hidden->coarse ? hidden->fine : hidden->chunk;

	size = ticket >= hidden->single ? 1 : size;
	return size < left ? size : left;
}

static void tickets_cover_the_grid(void **state)
{
	static const uint32_t blocks[] = {1, 31, 32, 33, 1000, 1001, 4096, 100003};
	static const uint32_t chunks[] = {1, 2, 5, 8, 64};

	(void)state;
	for (size_t i = 0; i < countof(blocks) * countof(chunks) * 4; i++) {
		struct weir_persistent hidden =
			cut(blocks[i / 4 % countof(blocks)], chunks[i / 4 / countof(blocks)], i & 1,
			    (enum weir_ticket_order)(i >> 1 & 1));
		uint32_t before = 0;
		for (uint32_t ticket = 0; ticket < hidden.tickets; ticket++) {
			assert_int_equal(weir_blocks_before(&hidden, ticket), before);
			before += size_of(&hidden, ticket);
		}
		assert_int_equal(before, hidden.blocks);
		assert_int_equal(weir_blocks_before(&hidden, hidden.tickets), hidden.blocks);
	}
}

/* Every block once, in tickets as pass-tickets.c walks through them. */
static void blocks_apart_cover_the_grid(void **state)
{
	static const uint32_t grids[][3] = {{1000, 1, 1}, {4, 300, 1}, {32, 50, 1}, {3, 5, 90},
					    {33, 40, 1},  {7, 1, 50},  {2, 2, 2}};
	static uint8_t ran[8192];
	unsigned apart = 0;

	(void)state;
	for (size_t i = 0; i < countof(grids) * 8; i++) {
		const uint32_t *grid = grids[i / 8];
		struct weir_persistent hidden = {.grid = {grid[0], grid[1], grid[2]},
						 .blocks = grid[0] * grid[1] * grid[2]};
		weir_cut(&hidden, 1 + (uint32_t)i % 8, WORKERS, 0, WEIR_TICKETS_APART);
		uint32_t step =
			hidden.step[0] + grid[0] * (hidden.step[1] + grid[1] * hidden.step[2]);
		assert_int_equal(step, hidden.across);
		assert_true(hidden.across <= WORKERS);
		apart += hidden.across > 1;
		memset(ran, 0, sizeof(ran));
		for (uint32_t ticket = 0; ticket < hidden.tickets; ticket++) {
			uint32_t from =
				hidden.coarse && ticket >= hidden.coarse ? hidden.coarse : 0;
			uint32_t n = ticket - from, size = size_of(&hidden, ticket);
			uint32_t line = from * hidden.chunk + n +
					n / hidden.across * hidden.across * (size - 1);

			if (ticket >= hidden.single)
				line = hidden.blocks - (hidden.tickets - ticket);
			else if (hidden.across == 1)
				line = weir_blocks_before(&hidden, ticket);
			for (uint32_t k = 0; k < size; k++, line += hidden.across)
				ran[line]++;
		}
		for (uint32_t k = 0; k < hidden.blocks; k++)
			assert_int_equal(ran[k], 1);
	}
	assert_true(apart >= 20);
}

static struct tickets_seen seen(uint32_t ticket, uint32_t restart, bool resumable)
{
	struct weir_persistent hidden = cut(1000, 1, 1, WEIR_TICKETS_IN_ROW);
	struct weir_words words = {.ticket = ticket, .restart = restart};

	return remaining_tickets(&words, &hidden, WORKERS, resumable);
}

static void check(struct tickets_seen is, double done, double given)
{
	assert_true(is.done == done && is.given == given);
}

/* Each worker has one ticket that nobody drew. */
static void persistent(void **state)
{
	(void)state;
	assert_false(seen(0, 0, false).begun);
	assert_true(seen(1, 0, false).begun);
	check(seen(0, 0, false), 0, 0.032);
	check(seen(500, 0, false), 0.5, 0.532);
	check(seen(990, 0, false), 0.99, 1);
	check(seen(1032, 0, false), 1, 1);
	/* Refused ones are not given out. */
	check(seen(520 | WEIR_TICKET_CLOSED, 532, false), 0.5, 0.532);
}

static void resumable(void **state)
{
	(void)state;
	assert_false(seen(0, 0, true).begun);
	check(seen(0, 0, true), 0, 0);
	check(seen(32, 0, true), 0, 0.032);
	check(seen(500, 0, true), 0.468, 0.5);
	check(seen(1032, 0, true), 1, 1);
	check(seen(550 | WEIR_TICKET_CLOSED, 532, true), 0.5, 0.532);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(tickets_cover_the_grid),
		cmocka_unit_test(blocks_apart_cover_the_grid),
		cmocka_unit_test(persistent),
		cmocka_unit_test(resumable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
