/* Threads in functions of the driver: how many there are at a time, and that the others can leave.
 */
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

#define WORKERS 2u /* with a block of one thread each */

/* Each block allocates memory and notes what it got. */
static const char text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".extern .func (.param .b64 o) malloc(.param .b64 i);\n"
	".visible .entry k(.param .u64 out)\n"
	"{ .reg .b64 %d<4>; .reg .b32 %r<2>; ld.param.u64 %d0, [out]; mov.u32 %r0, %ctaid.x;\n"
	"mul.wide.u32 %d1, %r0, 8; add.u64 %d0, %d0, %d1; cvt.u64.u32 %d2, %r0;\n"
	"{ .param .b64 a; .param .b64 b; st.param.b64 [a], %d2; call.uni (b), malloc, (a);\n"
	"ld.param.b64 %d3, [b]; } st.global.u64 [%d0], %d3; ret; }\n";

static struct ptx_module *module;
static uint32_t save_bytes, save_per_thread;
static uint32_t lanes = 1; /* of a block */
static bool first_calls;   /* before the other begins */
static uint16_t patience;

static struct world {
	uint64_t out[WORKERS];
	struct weir_words words __attribute__((aligned(64)));
	struct weir_report report;
	struct weir_persistent hidden;
	volatile uint64_t demand;
	void *saves;
	struct ptx_kernel *kernel;
	struct ptx_launch ptx;
	uint8_t parameters[256];
	pthread_t threads[WORKERS];
	_Atomic unsigned running, entered, returned;
	_Atomic bool may_return;
	_Atomic int error;
} world;

/* malloc(): returns when it may. */
static void *allocate(void *data, uint64_t size)
{
	(void)data;
	world.entered++;
	for (unsigned waited = 0; !world.may_return && waited < LOAD_DEADLINE; waited++)
		usleep(1000);
	world.returned++;
	return (void *)(uintptr_t)(size + 7);
}

static void note(void *data, const struct weir_verdict *verdict)
{
	(void)data;
	save_bytes = verdict->save_fixed;
	save_per_thread = verdict->save_per_thread;
}

static int load_text(const char *ptx)
{
	return load_forms(
		&module, ptx,
		&(struct weir_transform_options){.forms = 1u << WEIR_RESUMABLE, .verdict = note});
}

static int load(void **state)
{
	(void)state;
	return load_text(text);
}

static int unload(void **state)
{
	(void)state;
	ptx_module_free(module);
	free(world.saves);
	return 0;
}

static void *work(void *data)
{
	struct ptx_error why;

	if (ptx_run_block(world.kernel, &world.ptx, (uint64_t)(uintptr_t)data, 0, NULL, &why, NULL))
		world.error = 1;
	world.running--;
	return NULL;
}

static void launch(void)
{
	static const struct ptx_heap heap = {.allocate = allocate};
	struct ptx_param first = ptx_kernel_param(world.kernel, 0);
	struct ptx_param hidden = ptx_kernel_param(world.kernel, 1);
	const void *out = world.out;

	memcpy(world.parameters + first.offset, &out, sizeof(out));
	memcpy(world.parameters + hidden.offset, &world.hidden, sizeof(world.hidden));
	world.ptx = (struct ptx_launch){.grid = {WORKERS, 1, 1},
					.block = {lanes, 1, 1},
					.params = world.parameters,
					.sm_count = WORKERS,
					.heap = &heap};
	world.running = WORKERS;
	for (size_t w = 0; w < WORKERS; w++) {
		assert_int_equal(pthread_create(&world.threads[w], NULL, work, (void *)w), 0);
		WAIT(w || !first_calls || world.entered);
	}
	world.hidden.fresh = 0;
}

/* @calls: threads that may be in malloc() at a time. @allocating: threads of blocks that call it.
 */
static void begin(uint16_t calls, uint16_t allocating)
{
	free(world.saves);
	world = (struct world){.kernel = ptx_module_kernel(module, "k__weir_resumable")};
	assert_non_null(world.kernel);
	world.hidden = (struct weir_persistent){
		.words = (uintptr_t)&world.words,
		.demand = (uintptr_t)&world.demand,
		.report = (uintptr_t)&world.report,
		.grid = {WORKERS, 1, 1},
		.blocks = WORKERS,
		.serial = 1,
		.fresh = 1,
		.save_stride = (save_bytes + lanes * save_per_thread + 255) / 256 * 256,
		.calls = calls,
		.allocating = allocating,
		.patience = patience};
	weir_cut(&world.hidden, 1, WORKERS, 1, WEIR_TICKETS_IN_ROW);
	world.saves = calloc(WORKERS + 1, world.hidden.save_stride);
	assert_non_null(world.saves);
	world.hidden.saves = ((uintptr_t)world.saves + 255) / 256 * 256;
	launch();
}

/* Lets malloc() return. */
static void end(void)
{
	world.may_return = true;
	for (size_t w = 0; w < WORKERS; w++)
		pthread_join(world.threads[w], NULL);
	assert_int_equal(world.error, 0);
}

static void is_right(void)
{
	assert_int_equal(world.words.done, world.hidden.serial);
	assert_int_equal(world.entered, WORKERS);
	for (uint64_t b = 0; b < WORKERS; b++)
		assert_int_equal(world.out[b], b + 7);
}

static void one_at_a_time(void **state)
{
	(void)state;
	begin(1, 0);
	WAIT(world.entered);
	usleep(20000); /* in which the other would come if it could */
	assert_int_equal(world.entered, 1);
	end();
	is_right();
}

static void as_many_as_may(void **state)
{
	static const uint16_t enough[] = {0, 2, 256};

	(void)state;
	for (size_t k = 0; k < sizeof(enough) / sizeof(enough[0]); k++) {
		begin(enough[k], enough[k]);
		WAIT(world.entered == WORKERS);
		end();
		is_right();
	}
}

/* While the other is in malloc(), which leaves when it has returned, and does not call again. */
static void one_that_waits_leaves(void **state)
{
	(void)state;
	begin(1, 0);
	WAIT(world.entered);
	world.demand = 1;
	WAIT(world.running == 1);
	assert_int_equal(world.returned, 0);
	end();
	assert_int_equal(world.entered, 1);
	assert_int_equal(world.words.done, 0);
	assert_int_equal(world.words.saved, 2);
	world.demand = 0;
	launch();
	end();
	is_right();
}

/* The other block may call when the first one has ended. */
static void one_block_at_a_time(void **state)
{
	(void)state;
	first_calls = true;
	begin(0, 1);
	first_calls = false;
	usleep(20000);
	assert_int_equal(world.entered, 1);
	end();
	is_right();
}

/* The first block has called, and waits for what the other one does then. */
static const char waiting[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".extern .func (.param .b64 o) malloc(.param .b64 i);\n"
	".visible .entry k(.param .u64 out)\n"
	"{ .reg .b64 %d<4>; .reg .b32 %r<2>; .reg .pred %p; ld.param.u64 %d0, [out];\n"
	"mov.u32 %r0, %ctaid.x; cvt.u64.u32 %d2, %r0;\n"
	"{ .param .b64 a; .param .b64 b; st.param.b64 [a], %d2; call.uni (b), malloc, (a);\n"
	"ld.param.b64 %d3, [b]; } setp.eq.u32 %p, %r0, 1; @%p bra S;\n"
	"W: ld.volatile.global.u64 %d1, [%d0+8]; setp.eq.u64 %p, %d1, 0; @%p bra W;\n"
	"st.global.u64 [%d0], %d3; ret;\n"
	"S: st.global.u64 [%d0+8], %d3; ret; }\n";

static void blocks_wait_for_others_that_allocate(void **state)
{
	assert_int_equal(unload(state), 0);
	world.saves = NULL;
	assert_int_equal(load_text(waiting), 0);
	begin(0, 1);
	end();
	is_right();
}

/* As if somebody were in malloc() at each look: they may call it again and again. */
static void somebody_is_inside(void)
{
	void *inside; /* the module's only variable is first */
	size_t size;

	ptx_module_memory(module, &inside, &size);
	assert_true(size >= sizeof(uint32_t));
	*(uint32_t *)inside = 1;
}

static void blocks_need_not_wait_for_ever(void **state)
{
	assert_int_equal(unload(state), 0);
	world.saves = NULL;
	assert_int_equal(load_text(waiting), 0);
	somebody_is_inside();
	first_calls = true;
	patience = 1;
	begin(0, 1);
	first_calls = false;
	patience = 0;
	end();
	is_right();
}

/* Lanes of a warp that are at different places, and go on until they are told to end. */
static const char apart[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".extern .func (.param .b64 o) malloc(.param .b64 i);\n"
	".visible .entry k(.param .u64 out)\n"
	"{ .reg .b64 %d<4>; .reg .b32 %r<2>; .reg .pred %p, %q; ld.param.u64 %d0, [out];\n"
	"mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 0; @%p bra L;\n"
	"M: { .param .b64 a; .param .b64 b; mov.u64 %d2, 1; st.param.b64 [a], %d2;\n"
	"call.uni (b), malloc, (a); ld.param.b64 %d3, [b]; }\n"
	"ld.volatile.global.u64 %d1, [%d0]; setp.eq.u64 %q, %d1, 0; @%q bra M; ret;\n"
	"L: ld.volatile.global.u64 %d1, [%d0]; setp.eq.u64 %q, %d1, 0; @%q bra L; ret; }\n";

/* They need not be together to leave. */
static void lanes_that_are_apart_leave(void **state)
{
	(void)state;
	assert_int_equal(unload(state), 0);
	world.saves = NULL;
	assert_int_equal(load_text(apart), 0);
	lanes = 2;
	begin(1, 0);
	world.may_return = true;
	WAIT(world.entered > 2);
	world.demand = 1;
	WAIT(!world.running);
	end();
	assert_int_equal(world.words.done, 0);
	world.demand = 0;
	world.out[0] = 1;
	launch();
	end();
	assert_int_equal(world.words.done, world.hidden.serial);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(as_many_as_may),
		cmocka_unit_test(one_that_waits_leaves),
		cmocka_unit_test(one_block_at_a_time),
		/* The last three have their own kernels. */
		cmocka_unit_test(blocks_wait_for_others_that_allocate),
		cmocka_unit_test(blocks_need_not_wait_for_ever),
		cmocka_unit_test(lanes_that_are_apart_leave),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
