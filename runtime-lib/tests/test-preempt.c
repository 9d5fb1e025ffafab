/* Launches in forms, as the driver sees them: their order, parameters, gates and slots. On the null
 * driver. */
#include "formed.h"

#include "gates/gate.h"

#include "weir/drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct constant_copy constants[] = {{.to = 0x5000, .from = 0x6000, .size = 40}};

static void check_parameters(const struct null_op *op, size_t hidden)
{
	assert_int_equal(op->size, 24 + hidden + sizeof(symbols));
	assert_memory_equal(op->parameters, params[0], 8);
	assert_memory_equal(op->parameters + 8, params[1], 4);
	assert_memory_equal(op->parameters + 16, params[2], 8);
	assert_memory_equal(op->parameters + 24 + hidden, symbols, sizeof(symbols));
}

static void chain(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel;

	(void)state;
	rewritten.constants = constants;
	rewritten.n_constants = 1;
	kernel = kernel_of(2000000, &rewritten);
	assert_true(settles(n, kernel, BLOCKS));
	agent.demand[1]->word = 0;
	usleep(30000);

	/* Gate, constants, kernel, and two continuations behind gates: it takes 2 ms. */
	size_t count = ops_of(n, kernel, BLOCKS);
	const struct null_op *ops = driver->ops;
	if (ops[0].kind == NULL_GATE) { /* the first of all may be due */
		ops++;
		count--;
	}
	assert_int_equal(count, 6);
	assert_int_equal(ops[0].kind, NULL_COPY);
	assert_int_equal(ops[0].address, 0x5000);
	assert_true(is_form(&ops[1]) && is_form(&ops[3]) && is_form(&ops[5]));
	assert_int_equal(ops[2].kind, NULL_GATE);
	assert_int_equal(ops[4].kind, NULL_GATE);
	for (size_t i = 1; i < 6; i += 2) {
		const struct weir_persistent *hidden = hidden_of(&ops[i]);
		assert_ptr_equal(ops[i].function, FORM(WEIR_PERSISTENT));
		assert_ptr_equal(ops[i].stream, STREAM(n, 1));
		check_parameters(&ops[i], sizeof(*hidden));
		assert_int_equal(ops[i].grid[0], AT_ONCE);
		assert_int_equal(ops[i].block[0], 64);
		assert_int_equal(hidden->grid[0], BLOCKS);
		assert_int_equal(hidden->blocks, BLOCKS);
		assert_in_range(hidden->tickets, (BLOCKS + hidden->chunk - 1) / hidden->chunk,
				BLOCKS);
		assert_int_equal(hidden->serial, hidden_of(&ops[1])->serial);
		assert_int_equal(hidden->words, hidden_of(&ops[1])->words);
		/* The last one stays. */
		assert_int_equal(hidden->demand != 0, i < 5);
	}
	assert_int_equal(hidden_of(&ops[1])->demand, ops[2].address);

	/* The next launch is the next serial, and needs no gate of its own. */
	uint32_t serial = hidden_of(&ops[1])->serial;
	assert_int_equal(ops_of(n, kernel, BLOCKS), 6);
	assert_int_equal(hidden_of(&driver->ops[1])->serial, serial + 1);
	gone(n);
}

static void packed_parameters(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(500000, &rewritten);
	uint8_t buffer[24] = {0};
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY};
	CUlaunchConfig config = {.gridDimX = BLOCKS,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 64,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = STREAM(n, 1),
				 .attrs = &attribute,
				 .numAttrs = 1};

	(void)state;
	memcpy(buffer, params[0], 8);
	memcpy(buffer + 8, params[1], 4);
	memcpy(buffer + 16, params[2], 8);
	assert_true(settles(n, kernel, BLOCKS));
	driver->n_ops = 0;
	cuLaunchKernel(kernel, BLOCKS, 1, 1, 64, 1, 1, 0, STREAM(n, 1), NULL, extra);
	land(0);
	const struct null_op *op = &driver->ops[driver->n_ops - 1];
	assert_true(is_form(op));
	check_parameters(op, sizeof(struct weir_persistent));

	/* Attributes that forms can have are passed on; others make the launch native. */
	driver->n_ops = 0;
	assert_int_equal(cuLaunchKernelEx(&config, kernel, params, NULL), CUDA_SUCCESS);
	land(0);
	op = &driver->ops[driver->n_ops - 1];
	assert_true(is_form(op));
	assert_int_equal(op->attributes, 1);
	assert_int_equal(op->grid[0], AT_ONCE);
	attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
	driver->n_ops = 0;
	assert_int_equal(cuLaunchKernelEx(&config, kernel, params, NULL), CUDA_SUCCESS);
	assert_false(is_form(&driver->ops[driver->n_ops - 1]));
	cuLaunchCooperativeKernel(kernel, BLOCKS, 1, 1, 64, 1, 1, 0, STREAM(n, 1), params);
	assert_false(is_form(&driver->ops[driver->n_ops - 1]));

	/* Too few parameters: the driver is to say so. */
	size = 16;
	cuLaunchKernel(kernel, BLOCKS, 1, 1, 64, 1, 1, 0, STREAM(n, 1), NULL, extra);
	assert_false(is_form(&driver->ops[driver->n_ops - 1]));
	gone(n);
}

static void slices(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_SLICED);
	CUfunction kernel = kernel_of(1000000, &rewritten);
	unsigned next = 0;

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	/* 1000 blocks in 1 ms: 87 blocks in seven eighths of the 100 us that others may have to
	 * wait. */
	size_t count = ops_of(n, kernel, BLOCKS);
	for (size_t i = 0; i < count; i++) {
		const struct null_op *op = &driver->ops[i];
		if (op->kind == NULL_GATE)
			continue;
		const struct weir_slice *slice = (const void *)(op->parameters + 24);
		assert_ptr_equal(op->function, FORM(WEIR_SLICED));
		check_parameters(op, sizeof(*slice));
		assert_int_equal(slice->first[0], next);
		assert_int_equal(slice->grid[0], BLOCKS);
		assert_int_equal(op->grid[0], next + 87 < BLOCKS ? 87 : BLOCKS - next);
		next += op->grid[0];
	}
	assert_int_equal(next, BLOCKS);
	assert_in_range(count, 23, 24); /* and a gate between two */
	gone(n);
}

/* A hold in the middle of a launch is an eviction, and one before it begins is none. */
static void a_hold_between_slices_is_an_eviction(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_SLICED);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	atomic_store(&agent.control->flags, WEIR_CONTROL_HOLDABLE);
	assert_true(settles(n, kernel, BLOCKS));
	cuStreamSynchronize(STREAM(n, 1));
	driver->streams_busy = driver->events_busy = 1;
	hold(1);
	launch_call(n, kernel, BLOCKS);
	looks();
	hold(0);
	looks();
	assert_int_equal(agent.status->form_evictions[WEIR_SLICED], 0);
	hold(1);
	looks();
	assert_int_equal(agent.status->form_evictions[WEIR_SLICED], 0);
	hold(0);
	assert_true(eventually(agent.status->form_evictions[WEIR_SLICED] == 1));
	assert_int_equal(agent.status->evictions, 1);

	/* It ends before its gates open again. */
	hold(1);
	looks();
	driver->streams_busy = driver->events_busy = 0;
	assert_true(eventually(!agent.status->outstanding));
	hold(0);
	assert_int_equal(agent.status->form_evictions[WEIR_SLICED], 1);
	gone(n);
}

static void saves(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE);
	/* A block takes 5 ms / 2: it must leave inside. */
	CUfunction kernel = kernel_of(5000000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, 2 * AT_ONCE));
	ops_of(n, kernel, 2 * AT_ONCE);
	const struct null_op *op = &driver->ops[driver->n_ops - 1];
	assert_ptr_equal(op->function, FORM(WEIR_RESUMABLE));
	const struct weir_persistent *hidden = hidden_of(op);
	assert_int_equal(hidden->save_stride, (100 + 7 * 64 + 255) / 256 * 256);
	/* The null driver's GPU has 1 GHz and writes 2000 bytes in a ns. */
	assert_int_equal(hidden->drain,
			 WEIR_SAVE_NS + AT_ONCE * hidden->save_stride / (2000 * WEIR_SAVED_PART));
	assert_true(hidden->kind != 0);
	assert_true(hidden->saves && hidden->saves % 256 == 0);
	assert_int_equal(hidden->chunk, 1);
	assert_int_equal(op->grid[0], AT_ONCE);
	gone(n);
}

static void saved_and_finished_blocks_are_counted(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(5000000, &rewritten);
	const struct weir_status_page *status = agent.status;
	uint64_t stride;

	(void)state;
	assert_true(settles(n, kernel, 2 * AT_ONCE));
	ops_of(n, kernel, 2 * AT_ONCE);
	stride = hidden_of(&driver->ops[driver->n_ops - 1])->save_stride;
	launch_call(n, kernel, 2 * AT_ONCE);
	land_blocks(1, 5ull << 32 | 3);
	assert_true(eventually(status->blocks_saved == 3));
	assert_int_equal(status->blocks_drained, 5);
	assert_int_equal(status->bytes_saved, 3 * stride);
	launch_call(n, kernel, 2 * AT_ONCE);
	land_blocks(1, 5ull << 32 | 2); /* half of a report */
	launch_call(n, kernel, 2 * AT_ONCE);
	land_blocks(1, 7ull << 32 | 4);
	assert_true(eventually(status->blocks_saved == 4));
	assert_int_equal(status->blocks_drained, 7);
	assert_int_equal(status->bytes_saved, 4 * stride);
	gone(n);
}

static void blocks_that_may_wait_for_each_other(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten =
		in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_SLICED | 1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(5000000, &rewritten);

	(void)state;
	/* A grid that fits as a whole is never drained or cut. */
	assert_true(settles(n, kernel, AT_ONCE));
	ops_of(n, kernel, AT_ONCE);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_RESUMABLE));
	assert_int_equal(hidden_of(&driver->ops[driver->n_ops - 1])->chunk, 1);

	rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_SLICED);
	kernel = kernel_of(5000000, &rewritten);
	assert_true(settles(n, kernel, AT_ONCE));
	ops_of(n, kernel, AT_ONCE);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);
	gone(n);
}

/* Whether the next launch leaves when the agent lets a same-level client run. */
static bool leaves_for_same_level(unsigned n, CUfunction kernel)
{
	size_t i = 0;

	ops_of(n, kernel, BLOCKS);
	while (i < driver->n_ops && !is_form(&driver->ops[i]))
		i++;
	assert_true(i < driver->n_ops);
	assert_true(hidden_of(&driver->ops[i])->demand != 0);
	return hidden_of(&driver->ops[i])->hold != 0;
}

static void short_kernels_leave_only_for_same_level_clients_that_must_not_wait(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction shorter = kernel_of(1000000, &rewritten);

	(void)state;
	assert_true(settles(n, shorter, BLOCKS));
	CUfunction longer = kernel_of(3000000, &rewritten);
	assert_true(settles(n, longer, BLOCKS));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_false(leaves_for_same_level(n, shorter));
	assert_true(leaves_for_same_level(n, longer));
	agent.control->flags |= WEIR_CONTROL_URGENT;
	assert_true(eventually(atomic_load(&waiters_of(client)->waiting) == WAITING_URGENT));
	assert_true(leaves_for_same_level(n, shorter));
	agent.control->flags = 0;
	gone(n);
}

/* The GPU reports that the kernel is finished while its gates are closed for other clients. */
static void who_is_held_says_when_it_is_done(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);
	CUfunction kernel = kernel_of(2000000, &rewritten);

	(void)state;
	somebody_waits(n);
	assert_true(settles(n, kernel, BLOCKS));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	agent.control->hold = 1;
	driver->streams_busy = driver->events_busy = 1;
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	assert_true(in_form() > 0);
	usleep(20000);
	assert_false(agent.status->flags & WEIR_STATUS_DONE);
	land(0);
	assert_true(eventually(agent.status->flags & WEIR_STATUS_DONE));

	/* What is behind it has not begun. */
	launch_call(n, (CUfunction)0x8000, 1);
	assert_true(eventually(!(agent.status->flags & WEIR_STATUS_DONE)));
	driver->streams_busy = driver->events_busy = 0;
	agent.control->hold = agent.control->flags = 0;
	assert_true(eventually(agent.status->outstanding == 0));
	assert_false(agent.status->flags & WEIR_STATUS_DONE);
	gone(n);
}

static void slots_outlive_streams(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);
	struct preempt_slot *slot;

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	slot = &atomic_load(&preempting_of(client)->slots)->slot[0];
	launch_call(n, kernel, BLOCKS);
	assert_int_equal(cuStreamDestroy_v2(STREAM(n, 1)), CUDA_SUCCESS);
	usleep(50000);
	assert_int_equal(atomic_load(&slot->taken), 1); /* its words are still in use */
	land(0);
	assert_true(eventually(!atomic_load(&slot->taken)));

	/* The next stream gets it, and goes on with its serials. */
	uint32_t last = atomic_load(&slot->last);
	launch_call(n, kernel, BLOCKS); /* makes a new record of the stream */
	assert_true(eventually(atomic_load(&slot->taken)));
	ops_of(n, kernel, BLOCKS);
	assert_int_equal(hidden_of(&driver->ops[driver->n_ops - 1])->serial, last + 1);
	gone(n);
}

#define MANY       (PREEMPT_SLOTS_MAX + 2)
#define OF_MANY(i) ((CUstream)(uintptr_t)(0x70000000 + 8 * (i)))

static unsigned of_context;

static CUresult context_of_many(CUstream stream, CUcontext *context)
{
	(void)stream;
	*context = CONTEXT(of_context);
	return CUDA_SUCCESS;
}

static unsigned with_slots(struct stream *const streams[MANY])
{
	unsigned n = 0;

	for (unsigned i = 0; i < MANY; i++)
		n += atomic_load(&streams[i]->slot) != NULL;
	return n;
}

/* Streams that found none ask again, and get one as soon as there is one. */
static void slots_are_asked_for_again(void **state)
{
	void *before = driver_hooks[HOOK_cuStreamGetCtx].real;
	static struct stream *streams[MANY];
	struct stream *without = NULL;

	(void)state;
	of_context = welcomed(1);
	driver_hooks[HOOK_cuStreamGetCtx].real = (void *)context_of_many;
	for (unsigned i = 0; i < MANY; i++) {
		streams[i] = stream_find(OF_MANY(i), false);
		assert_non_null(streams[i]);
		preempt_want(streams[i]);
	}
	assert_true(eventually(with_slots(streams) == PREEMPT_SLOTS_MAX));
	assert_true(eventually(!atomic_load(&preempting_of(client)->slots_wanted)));
	for (unsigned i = 0; i < MANY; i++) {
		if (!atomic_load(&streams[i]->slot) &&
		    (!without || atomic_load(&streams[i]->slot_wanted)))
			without = streams[i];
	}
	unsigned has = 0;
	while (!atomic_load(&streams[has]->slot))
		has++;
	assert_int_equal(cuStreamDestroy_v2(OF_MANY(has)), CUDA_SUCCESS);
	assert_true(eventually((preempt_want(without), atomic_load(&without->slot) != NULL)));
	driver_hooks[HOOK_cuStreamGetCtx].real = before;
	gone(of_context);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain),
		cmocka_unit_test(packed_parameters),
		cmocka_unit_test(slices),
		cmocka_unit_test(a_hold_between_slices_is_an_eviction),
		cmocka_unit_test(saves),
		cmocka_unit_test(blocks_that_may_wait_for_each_other),
		cmocka_unit_test(saved_and_finished_blocks_are_counted),
		cmocka_unit_test(
			short_kernels_leave_only_for_same_level_clients_that_must_not_wait),
		cmocka_unit_test(who_is_held_says_when_it_is_done),
		cmocka_unit_test(slots_outlive_streams),
		cmocka_unit_test(slots_are_asked_for_again),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
