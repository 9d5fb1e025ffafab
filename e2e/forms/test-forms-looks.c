/* The warp that looks for its block leaves first, and the others soon behind it: they look `lead`
 * later (weir/preempt-abi.h), and not at the same time, when they would miss what it reads. */
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

#define WARPS 2u
#define LOOK  (1u << 28) /* 0.27 s: a cycle of the interpreter is a nanosecond */
#define LEAD  (1u << 26)
#define MANY  10000u /* rounds, more than a warp makes before it is the next one's turn */

/* Each warp counts its rounds. It ends when it is told to. */
static const char text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry k(.param .u64 shared)\n"
	"{ .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p;\n"
	"ld.param.u64 %d0, [shared]; mov.u32 %r0, %tid.x; shr.u32 %r0, %r0, 5;\n"
	"mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; mov.u32 %r1, 0;\n"
	"AGAIN: add.u32 %r1, %r1, 1; st.volatile.global.u32 [%d1+4], %r1;\n"
	"ld.volatile.global.u32 %r2, [%d0]; setp.eq.u32 %p, %r2, 0; @%p bra AGAIN; ret; }\n";

static struct ptx_module *module;
static uint32_t save_fixed, save_per_thread;

static struct world {
	struct shared {
		volatile uint32_t may_end, rounds[WARPS];
	} shared;
	struct weir_words words __attribute__((aligned(64)));
	struct weir_persistent hidden;
	volatile uint64_t demand;
	void *saves;
	struct ptx_kernel *kernel;
	struct ptx_launch ptx;
	uint8_t parameters[256];
	int error;
} world;

static void note(void *data, const struct weir_verdict *verdict)
{
	(void)data;
	save_fixed = verdict->save_fixed;
	save_per_thread = verdict->save_per_thread;
}

static int load(void **state)
{
	(void)state;
	return load_forms(
		&module, text,
		&(struct weir_transform_options){.forms = 1u << WEIR_RESUMABLE, .verdict = note});
}

static int unload(void **state)
{
	(void)state;
	ptx_module_free(module);
	free(world.saves);
	return 0;
}

static void prepare(void)
{
	uint64_t stride = (save_fixed + save_per_thread * WARPS * 32 + 255) / 256 * 256;

	world.kernel = ptx_module_kernel(module, "k__weir_resumable");
	world.saves = aligned_alloc(256, stride);
	assert_non_null(world.kernel);
	assert_non_null(world.saves);
	world.hidden = (struct weir_persistent){.words = (uintptr_t)&world.words,
						.demand = (uintptr_t)&world.demand,
						.grid = {1, 1, 1},
						.blocks = 1,
						.serial = 1,
						.fresh = 1,
						.saves = (uintptr_t)world.saves,
						.save_stride = stride,
						.look = LOOK,
						.lead = LEAD};
	weir_cut(&world.hidden, 1, 1, 1, WEIR_TICKETS_IN_ROW);
}

static uint64_t next_poll(void)
{
	return __atomic_load_n(&world.words.next_poll, __ATOMIC_RELAXED);
}

static void *launch(void *data)
{
	struct ptx_param first = ptx_kernel_param(world.kernel, 0);
	struct ptx_param hidden = ptx_kernel_param(world.kernel, 1);
	const void *shared = &world.shared;
	struct ptx_error why;

	memcpy(world.parameters + first.offset, &shared, sizeof(shared));
	memcpy(world.parameters + hidden.offset, &world.hidden, sizeof(world.hidden));
	world.ptx = (struct ptx_launch){.grid = {1, 1, 1},
					.block = {WARPS * 32, 1, 1},
					.params = world.parameters,
					.sm_count = 1};
	world.error = ptx_run_block(world.kernel, &world.ptx, 0, 0, NULL, &why, NULL);
	return data;
}

/* The first ticket polls, then a look, which makes a warp the one that looks for the block. It
 * learns of the demand later. Returns by how many rounds the other one was behind it. */
static uint32_t leave(void)
{
	const struct shared *shared = &world.shared;
	pthread_t thread;
	uint64_t first;

	memset(&world, 0, offsetof(struct world, saves));
	prepare();
	assert_int_equal(pthread_create(&thread, NULL, launch, NULL), 0);
	WAIT((first = next_poll()));
	WAIT(next_poll() != first);
	world.demand = 1;
	pthread_join(thread, NULL);
	assert_int_equal(world.error, 0);
	assert_int_equal(world.words.evictions, 1);
	uint32_t one = shared->rounds[0], other = shared->rounds[1];
	return one > other ? one - other : other - one;
}

static void resume(void)
{
	world.demand = 0;
	world.shared.may_end = 1;
	world.hidden.fresh = 0;
	launch(NULL);
	assert_int_equal(world.error, 0);
	assert_int_equal(world.words.done, 1);
	free(world.saves);
	world.saves = NULL;
}

/* A loaded machine may keep the thread from running until both warps are to look. */
static void leave_in_order(void **state)
{
	unsigned tries = 20;
	uint32_t behind;

	(void)state;
	do {
		behind = leave();
		resume();
	} while (behind <= MANY && --tries);
	assert_true(behind > MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(leave_in_order)};

	return cmocka_run_group_tests_name("looks", tests, load, unload);
}
