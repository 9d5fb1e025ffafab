/* Quotas (weir/preempt-abi.h): which workers leave, when all come back, and what is counted. */
#include "load.h"

#include "weir/preempt-abi.h"
#include "weir/tickets.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SMS     4u
#define BLOCKS  60u
#define FOREVER UINT32_MAX

/* A block notes its SM and ends when so many blocks may end that it is one of them. */
static const char text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry k(.param .u64 shared)\n"
	"{ .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p;\n"
	"ld.param.u64 %d0, [shared]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %smid;\n"
	"add.u32 %r1, %r1, 1; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;\n"
	"atom.global.add.u32 %r2, [%d1+8], %r1; atom.global.add.u32 %r2, [%d0], 1;\n"
	"WAIT: ld.volatile.global.u32 %r3, [%d0+4]; setp.le.u32 %p, %r3, %r2;\n"
	"@%p bra WAIT; ret; }\n";

struct shared {
	volatile uint32_t began, may_end;
	volatile uint32_t sm[BLOCKS]; /* of each block, plus 1 */
};

static struct ptx_module *module;
static uint32_t save_fixed, save_per_thread;

/* One chain, and its present launch. */
static struct world {
	struct shared shared;
	struct weir_words words __attribute__((aligned(64)));
	struct weir_report report;
	struct weir_persistent hidden;
	volatile uint64_t any;
	volatile uint64_t demand;
	volatile uint32_t sms;
	void *saves;
	struct ptx_kernel *kernel;
	struct ptx_launch ptx;
	uint8_t parameters[256];
	uint32_t workers;
	pthread_t threads[SMS];
	_Atomic uint32_t running;
	_Atomic int error;
} world;

static void note(void *data, const struct weir_verdict *verdict)
{
	(void)data;
	if (verdict->form == WEIR_RESUMABLE) {
		save_fixed = verdict->save_fixed;
		save_per_thread = verdict->save_per_thread;
	}
}

static int load(void **state)
{
	(void)state;
	return load_forms(&module, text,
			  &(struct weir_transform_options){.forms = 1u << WEIR_PERSISTENT |
								    1u << WEIR_RESUMABLE,
							   .verdict = note});
}

static int unload(void **state)
{
	(void)state;
	ptx_module_free(module);
	free(world.saves);
	return 0;
}

static void reset(enum weir_form form, uint32_t workers, uint32_t dealt, uint32_t sms)
{
	free(world.saves);
	world = (struct world){.workers = workers, .any = 1, .sms = sms};
	world.kernel = ptx_module_kernel(module, form == WEIR_PERSISTENT ? "k__weir_persistent"
									 : "k__weir_resumable");
	assert_non_null(world.kernel);
	world.hidden = (struct weir_persistent){.words = (uintptr_t)&world.words,
						.demand = (uintptr_t)&world.demand,
						.room = (uintptr_t)&world.sms,
						.quota = weir_quota(sms),
						.report = (uintptr_t)&world.report,
						.grid = {BLOCKS, 1, 1},
						.blocks = BLOCKS,
						.serial = 1,
						.dealt = dealt,
						.fresh = 1};
	weir_cut(&world.hidden, 1, workers, 1, WEIR_TICKETS_IN_ROW);
	world.hidden.save_stride = (save_fixed + save_per_thread + 255) / 256 * 256;
	world.saves = aligned_alloc(256, world.hidden.save_stride * SMS + 256);
	assert_non_null(world.saves);
	world.hidden.saves = (uintptr_t)world.saves;
}

static void *work(void *data)
{
	struct ptx_error why;

	if (ptx_run_block(world.kernel, &world.ptx, (uint64_t)(uintptr_t)data,
			  (uint32_t)(uintptr_t)data, NULL, &why, NULL))
		world.error = 1;
	world.running--;
	return NULL;
}

/* Worker w runs on SM w. */
static void launch(void)
{
	struct shared *shared = &world.shared;
	struct ptx_param first = ptx_kernel_param(world.kernel, 0);
	struct ptx_param hidden = ptx_kernel_param(world.kernel, 1);

	memcpy(world.parameters + first.offset, &shared, sizeof(shared));
	memcpy(world.parameters + hidden.offset, &world.hidden, sizeof(world.hidden));
	world.ptx = (struct ptx_launch){.grid = {world.workers, 1, 1},
					.block = {1, 1, 1},
					.params = world.parameters,
					.sm_count = SMS};
	world.running = world.workers;
	for (uint32_t w = 0; w < world.workers; w++)
		assert_int_equal(
			pthread_create(&world.threads[w], NULL, work, (void *)(uintptr_t)w), 0);
	world.hidden.fresh = 0;
}

static void end(void)
{
	for (uint32_t w = 0; w < world.workers; w++)
		pthread_join(world.threads[w], NULL);
	assert_int_equal(world.error, 0);
	assert_int_equal(world.words.left, 0);
	assert_int_equal(world.words.asked, 0);
}

static unsigned blocks_on(uint32_t sm)
{
	unsigned n = 0;

	for (uint32_t k = 0; k < BLOCKS; k++)
		n += world.shared.sm[k] == sm + 1;
	return n;
}

/* Each block ran once: it adds its SM to a word of its own. */
static void must_be_done(uint32_t partial, uint32_t returns)
{
	unsigned n = 0;

	assert_int_equal(world.words.done, 1);
	assert_int_equal(world.shared.began, BLOCKS);
	for (uint32_t sm = 0; sm < SMS; sm++)
		n += blocks_on(sm);
	assert_int_equal(n, BLOCKS);
	assert_int_equal(world.words.quota, 0);
	assert_int_equal(world.words.partial, partial);
	assert_int_equal(world.words.returns, returns);
	assert_true(world.report.launch == ((uint64_t)world.words.evictions << 32 | 1));
	assert_true(world.report.partial == ((uint64_t)returns << 32 | partial));
}

/* Two of four leave while the others go on; they come back before the launch is done. */
static void leave_and_return(uint32_t dealt)
{
	reset(WEIR_PERSISTENT, 4, dealt, 0);
	launch();
	WAIT(world.shared.began == 4);
	world.sms = 2;
	world.shared.may_end = 20;
	WAIT(world.running == 2 && world.shared.began == 22);
	assert_int_equal(world.words.quota, weir_quota(2) | 2);
	assert_int_equal(world.words.left, 2);
	assert_true(blocks_on(2) <= 3 && blocks_on(3) <= 3);

	world.sms = 1; /* worker 2 may come back */
	world.shared.may_end = 40;
	end();
	assert_int_equal(world.words.done, 0);
	assert_int_equal(world.words.evictions, 1);
	assert_int_equal(world.words.quota, weir_quota(1));
	assert_int_equal(world.words.returns, 1);

	assert_int_equal(world.words.ticket, world.shared.began);
	uint32_t before = world.shared.may_end = world.shared.began, on_3 = blocks_on(3),
		 on_2 = blocks_on(2);
	world.hidden.dealt = 0;
	launch();
	WAIT(world.running == 3 && world.shared.began == before + 3);
	world.shared.may_end = FOREVER;
	end();
	assert_int_equal(blocks_on(3), on_3);
	assert_true(blocks_on(2) > on_2);
	assert_int_equal(world.words.evictions, 1);
	must_be_done(2, 1);
}

static void workers_leave_and_return(void **state)
{
	(void)state;
	leave_and_return(4);
	leave_and_return(0);
}

/* The last of four polls while the blocks of the others run on, and leaves at once. */
static void a_poller_sees_what_is_asked_while_blocks_run(void **state)
{
	(void)state;
	for (uint32_t dealt = 0; dealt <= 3; dealt += 3) {
		reset(WEIR_PERSISTENT, 4, dealt, 0);
		world.hidden.poller = 1;
		launch();
		WAIT(world.shared.began == 3);
		world.sms = 1;
		WAIT(world.running == 3);
		assert_int_equal(world.shared.began, 3);
		assert_int_equal(world.words.quota, weir_quota(1) | 1);
		assert_int_equal(blocks_on(3), 0);
		world.shared.may_end = FOREVER;
		end();
		must_be_done(1, 0);

		reset(WEIR_PERSISTENT, 4, dealt, 0);
		world.hidden.poller = 1;
		launch();
		WAIT(world.shared.began == 3);
		world.demand = 1;
		WAIT(world.running == 3);
		assert_true(world.words.ticket & WEIR_TICKET_CLOSED);
		world.shared.may_end = FOREVER;
		end();
		assert_int_equal(world.shared.began, 3);
		assert_int_equal(world.words.evictions, 1);
	}
}

/* Nobody asks: a poller runs no block, and leaves when no ticket is left. Asked, it works on. */
static void a_poller_draws_when_it_is_asked(void **state)
{
	(void)state;
	for (uint32_t asked = 0; asked <= 1; asked++) {
		reset(WEIR_PERSISTENT, 4, 3, 0);
		world.hidden.poller = 1;
		launch();
		WAIT(world.shared.began == 3);
		/* Only the first worker may stay, and the last one of all. */
		world.sms = asked ? SMS : 0;
		if (asked)
			WAIT(world.words.ticket & WEIR_TICKET_ASKED);
		world.shared.may_end = FOREVER;
		end();
		if (!asked)
			assert_int_equal(blocks_on(3), 0);
		must_be_done(asked, 0);
	}
}

/* A poll delays a block. It is of no use where no ticket is left to refuse. */
static void polls_only_if_tickets_are_left(void **state)
{
	static const uint32_t chunks[] = {1, BLOCKS / SMS};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		reset(WEIR_PERSISTENT, SMS, SMS, 0);
		weir_cut(&world.hidden, chunks[i], SMS, 1, WEIR_TICKETS_IN_ROW);
		world.demand = i;
		world.shared.may_end = FOREVER;
		launch();
		end();
		assert_int_equal(world.words.next_poll == 0, world.hidden.tickets == SMS);
		must_be_done(0, 0);
	}
}

/* A second read of the host's memory takes as long as the first. */
static void looks_only_while_somebody_works(void **state)
{
	static const struct {
		bool any, has_quota;
		uint32_t quota; /* in the end */
	} cases[] = {{false, false, 0}, {true, false, 1}, {false, true, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		reset(WEIR_PERSISTENT, 1, 0, cases[i].has_quota);
		world.any = cases[i].any;
		world.sms = 1;
		launch();
		WAIT(world.shared.began == 1);
		assert_int_equal(world.words.quota >> WEIR_QUOTA_SHIFT & WEIR_QUOTA_SMS_MAX,
				 cases[i].quota);
		world.shared.may_end = FOREVER;
		end();
		assert_int_equal(world.words.done, 1);
	}
}

/* A launch that begins with a quota runs nothing elsewhere, but for tickets that need no drawing.
 */
static void begins_with_a_quota(void **state)
{
	static const enum weir_form forms[] = {WEIR_PERSISTENT, WEIR_RESUMABLE};

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		reset(forms[k / 2], 4, k == 1 ? 4 : 0, 3);
		world.shared.may_end = FOREVER;
		launch();
		end();
		for (uint32_t sm = 1; sm < SMS; sm++)
			assert_int_equal(blocks_on(sm), k == 1);
		assert_int_equal(world.words.evictions, 0);
		must_be_done(1, 0);
	}
}

/* The launch goes on with one worker, whatever the word says. */
static void the_last_one_stays(void **state)
{
	static const uint32_t sms[] = {SMS, 100, 0xfff, 0x1000, UINT32_MAX};

	(void)state;
	for (size_t k = 0; k < sizeof(sms) / sizeof(sms[0]); k++) {
		unsigned ran = 0;

		reset(k & 1 ? WEIR_RESUMABLE : WEIR_PERSISTENT, 4, 0, sms[k]);
		world.shared.may_end = FOREVER;
		launch();
		end();
		for (uint32_t sm = 0; sm < SMS; sm++)
			ran += blocks_on(sm) != 0;
		assert_int_equal(ran, 1);
		assert_int_equal(world.words.evictions, 0);
		must_be_done(1, 0);
	}
}

/* Nobody has left when the quota is enlarged: the launch is not closed. */
static void nobody_to_bring_back(void **state)
{
	(void)state;
	reset(WEIR_PERSISTENT, 3, 3, 1);
	launch();
	world.shared.may_end = 20;
	WAIT(world.shared.began == 23);
	world.sms = 0;
	world.shared.may_end = 40;
	WAIT(world.shared.began == 43);
	assert_int_equal(world.words.quota, WEIR_QUOTA_KNOWN);
	world.shared.may_end = FOREVER;
	end();
	assert_int_equal(world.words.evictions, 0);
	must_be_done(0, 0);
}

/* A continuation looks at the quota only if some SMs are to be left still. */
static void asks_only_for_a_quota(void **state)
{
	(void)state;
	for (uint32_t sms = 0; sms <= 1; sms++) {
		reset(WEIR_PERSISTENT, 3, 3, 1);
		world.demand = 1;
		world.shared.may_end = 3;
		launch();
		end();
		assert_int_equal(world.words.done, 0);
		world.words.quota = WEIR_QUOTA_KNOWN | sms << WEIR_QUOTA_SHIFT;
		world.demand = world.hidden.dealt = 0;
		world.sms = sms;
		launch();
		WAIT(world.shared.began == 6);
		assert_int_equal(!!(world.words.ticket & WEIR_TICKET_ASKED), sms);
		world.shared.may_end = FOREVER;
		end();
		must_be_done(0, 0);
	}
}

/* A launch that was asked to leave some SMs is closed before anybody has left. The next one begins
 * as if it had not been asked. */
static void closed_with_nobody_gone(void **state)
{
	(void)state;
	for (uint32_t sms = 1; sms <= 2; sms++) { /* of the launch's SMs: none, one */
		reset(WEIR_PERSISTENT, 3, 3, 1);
		launch();
		world.shared.may_end = 20;
		WAIT(world.shared.began == 23);
		assert_true(world.words.ticket & WEIR_TICKET_ASKED);
		assert_true(world.words.asked & WEIR_TICKET_ASKED);
		world.demand = 1;
		world.shared.may_end = FOREVER;
		end();
		assert_int_equal(world.words.done, 0);
		assert_int_equal(world.words.asked, 0);
		assert_int_equal(world.words.ticket, world.shared.began);
		world.demand = 0;
		world.hidden.dealt = 0;
		world.sms = sms;
		launch();
		end();
		must_be_done(sms - 1, 0);
	}
}

/* A demand for the whole GPU closes the launch as always, and the quota is that of the closing. */
static void demand_for_all(void **state)
{
	(void)state;
	reset(WEIR_PERSISTENT, 4, 4, 0);
	launch();
	WAIT(world.shared.began == 4);
	world.sms = 2;
	world.shared.may_end = 20;
	WAIT(world.running == 2);
	world.sms = 1;
	world.demand = 1;
	world.shared.may_end = FOREVER;
	end();
	assert_int_equal(world.words.done, 0);
	assert_int_equal(world.words.quota, weir_quota(1));
	world.demand = 0;
	world.sms = 0;
	world.hidden.dealt = 0;
	launch();
	end();
	while (world.words.done != 1) { /* it was closed to bring the last one back */
		launch();
		end();
	}
	assert_int_equal(world.words.evictions - world.words.returns, 1);
	assert_int_equal(world.words.quota, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_leave_and_return),
		cmocka_unit_test(begins_with_a_quota),
		cmocka_unit_test(the_last_one_stays),
		cmocka_unit_test(nobody_to_bring_back),
		cmocka_unit_test(closed_with_nobody_gone),
		cmocka_unit_test(asks_only_for_a_quota),
		cmocka_unit_test(demand_for_all),
		cmocka_unit_test(polls_only_if_tickets_are_left),
		cmocka_unit_test(a_poller_sees_what_is_asked_while_blocks_run),
		cmocka_unit_test(a_poller_draws_when_it_is_asked),
		cmocka_unit_test(looks_only_while_somebody_works),
	};

	alarm(300); /* a worker that does not leave */
	return cmocka_run_group_tests(tests, load, unload);
}
