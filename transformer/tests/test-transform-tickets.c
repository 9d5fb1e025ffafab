/* Dividing a grid into tickets. */
#include "weir/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define WORKERS  32u
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct weir_persistent cut(uint32_t blocks, uint32_t chunk, int even,
				  enum weir_ticket_order order)
{
	struct weir_persistent hidden = {.grid = {blocks, 1, 1}, .blocks = blocks};

	weir_cut(&hidden, chunk, WORKERS, even, order);
	return hidden;
}

/* Blocks of all tickets before @ticket. */
static uint32_t blocks_before(const struct weir_persistent *hidden, uint32_t ticket)
{
	uint64_t coarse = (uint64_t)hidden->coarse * hidden->chunk, before;

	if (ticket >= hidden->tickets)
		return hidden->blocks;
	if (!hidden->coarse || ticket <= hidden->coarse)
		before = (uint64_t)ticket * hidden->chunk;
	else if (ticket <= hidden->single)
		before = coarse + (uint64_t)(ticket - hidden->coarse) * hidden->fine;
	else
		before = hidden->blocks - (hidden->tickets - ticket);
	return before < hidden->blocks ? (uint32_t)before : hidden->blocks;
}

/* As passes/tickets/segment.c computes it. */
static uint32_t size_of(const struct weir_persistent *hidden, uint32_t ticket)
{
	uint32_t left = hidden->blocks - blocks_before(hidden, ticket);
	uint32_t size = hidden->coarse && ticket >= hidden->coarse ? hidden->fine : hidden->chunk;

	size = ticket >= hidden->single ? 1 : size;
	return size < left ? size : left;
}

static void tickets_cover_the_grid(void **state)
{
	static const uint32_t blocks[] = {1, 31, 32, 33, 1000, 1001, 4096, 100003};
	static const uint32_t chunks[] = {1, 2, 5, 8, 64};

	(void)state;
	for (size_t i = 0; i < COUNT(blocks) * COUNT(chunks) * 4; i++) {
		struct weir_persistent hidden =
			cut(blocks[i / 4 % COUNT(blocks)], chunks[i / 4 / COUNT(blocks)], i & 1,
			    (enum weir_ticket_order)(i >> 1 & 1));
		uint32_t before = 0;
		for (uint32_t ticket = 0; ticket < hidden.tickets; ticket++) {
			assert_int_equal(blocks_before(&hidden, ticket), before);
			before += size_of(&hidden, ticket);
		}
		assert_int_equal(before, hidden.blocks);
		assert_int_equal(blocks_before(&hidden, hidden.tickets), hidden.blocks);
	}
}

/* Each block runs once if tickets are walked as in passes/tickets/segment.c. */
static void blocks_apart_cover_the_grid(void **state)
{
	static const uint32_t grids[][3] = {{1000, 1, 1}, {4, 300, 1}, {32, 50, 1}, {3, 5, 90},
					    {33, 40, 1},  {7, 1, 50},  {2, 2, 2}};
	static uint8_t ran[8192];
	unsigned apart = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(grids) * 8; i++) {
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
				line = blocks_before(&hidden, ticket);
			for (uint32_t k = 0; k < size; k++, line += hidden.across)
				ran[line]++;
		}
		for (uint32_t k = 0; k < hidden.blocks; k++)
			assert_int_equal(ran[k], 1);
	}
	assert_true(apart >= 20);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(tickets_cover_the_grid),
		cmocka_unit_test(blocks_apart_cover_the_grid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
