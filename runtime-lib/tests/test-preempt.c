/* Launches in forms that leave, as the driver meets them: which kernels, in what order, with which
 * parameters and gates. libweir's own sources, on a driver that does nothing but be observable; the
 * test plays the compile service and the GPU. */
#include "fake-agent.h"
#include "null-driver.h"

#include "choose.h"
#include "gate.h"
#include "preempt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTEXT(n)   ((CUcontext)(uintptr_t)(0x10000 + 0x100 * (n)))
#define STREAM(n, s) ((CUstream)(uintptr_t)(0x10000 + 0x100 * (n) + 8 * (s)))
#define KERNEL(n)    ((CUfunction)(uintptr_t)(0x9000 + 0x10 * (n)))
#define FORM(form)   ((CUfunction)(uintptr_t)(NULL_FORM + 0x10 * (form)))
#define BLOCKS       1000u
#define AT_ONCE      (NULL_SMS * NULL_OCCUPANCY) /* blocks on the GPU, of whatever kernel */

/* Standings and pages are kept for the life of the process by intent; see client.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct fake_agent agent;
static struct null_driver *driver;
static unsigned contexts, kernels;
static struct client *client;       /* of the last context */
static uint32_t evicted[LANES_MAX]; /* what the GPU has reported of each lane */

/* The program's parameters: a pointer and, behind a hole, a double. */
static uint64_t pointer = 0x1122334455667788;
static uint32_t number = 0x99aabbcc;
static double real_number = 1.5;
static void *params[] = {&pointer, &number, &real_number};
static const struct weir_object_param params_at[] = {{0, 8}, {8, 4}, {16, 8}};
static const uint64_t symbols[] = {0xabcd00, 0xabcd08};
static const struct constant_copy constants[] = {{.to = 0x5000, .from = 0x6000, .size = 40}};

static struct rewritten in_forms(unsigned forms)
{
	struct rewritten rewritten = {
		.n_params = 3, .params = params_at, .n_symbols = 2, .symbols = symbols};

	for (unsigned form = 0; form < WEIR_FORM_COUNT; form++) {
		if (forms & 1u << form)
			rewritten.variants[form][0] = (struct variant){
				FORM(form), .save_fixed = 100, .save_per_thread = 7};
	}
	return rewritten;
}

static void launch_call(unsigned n, CUfunction kernel, unsigned blocks)
{
	assert_int_equal(
		cuLaunchKernel(kernel, blocks, 1, 1, 64, 1, 1, 0, STREAM(n, 1), params, NULL),
		CUDA_SUCCESS);
}

static unsigned welcomed(uint8_t level)
{
	unsigned n = ++contexts;

	fake_agent_welcome_next(&agent, level, 1);
	cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	fake_agent_join();
	agent.control->above = 1;
	cuCtxSetCurrent(CONTEXT(n));
	client = client_find(CONTEXT(n));
	assert_non_null(client);
	memset(evicted, 0, sizeof(evicted));
	return n;
}

static void gone(unsigned n)
{
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
	close(agent.client);
	agent.client = -1;
	cuCtxSetCurrent(NULL);
	driver->elapsed_ns = driver->form_elapsed_ns = 50000;
}

/* The GPU, at once: every launch in flight is finished after so many evictions. */
static void land(unsigned evictions)
{
	struct lanes *lanes = atomic_load(&client->lanes);

	for (size_t i = 0; lanes && i < LANES_MAX; i++) {
		struct lane *lane = &lanes->lane[i];
		uint32_t last = atomic_load(&lane->last), seen = atomic_load(&lane->seen);
		for (uint32_t serial = seen + 1; serial != last + 1; serial++)
			atomic_store(&lane->reports[serial % FLIGHTS_MAX],
				     (uint64_t)(evicted[i] += evictions) << 32 | serial);
		assert_true(eventually(atomic_load(&lane->seen) == last));
	}
}

static bool is_form(const struct null_op *op)
{
	return op->kind == NULL_LAUNCH && (uintptr_t)op->function >= NULL_FORM;
}

/* Launches until the kernel's choice is made. False: it never is. */
static bool settles(unsigned n, CUfunction kernel, unsigned blocks)
{
	for (int i = 0; i < 400; i++) {
		launch_call(n, kernel, blocks);
		land(0);
		usleep(2000);
		for (size_t k = 0; k < CHOICES_MAX; k++) {
			const struct choice *choice = choose_at(k);
			if (choice && atomic_load(&choice->key) &&
			    choice->geometry.function == kernel &&
			    choice->state == CHOICE_SETTLED && !atomic_load(&choice->trying))
				return true;
		}
	}
	return false;
}

/* A kernel of @ns that the compile service has in these forms. */
static CUfunction kernel_of(uint64_t ns, const struct rewritten *rewritten)
{
	CUfunction kernel = KERNEL(++kernels);
	struct function *function = function_find(client, kernel);

	assert_non_null(function);
	atomic_store(&function->rewritten, rewritten);
	atomic_store(&function->state, FUNCTION_READY);
	driver->elapsed_ns = driver->form_elapsed_ns = ns;
	return kernel;
}

/* What the driver is asked to do for one launch more. */
static size_t ops_of(unsigned n, CUfunction kernel, unsigned blocks)
{
	driver->n_ops = 0;
	launch_call(n, kernel, blocks);
	land(0);
	return driver->n_ops;
}

static const struct weir_persistent *hidden_of(const struct null_op *op)
{
	return (const void *)(op->parameters + 24);
}

static void check_parameters(const struct null_op *op, size_t hidden)
{
	assert_int_equal(op->size, 24 + hidden + sizeof(symbols));
	assert_memory_equal(op->parameters, &pointer, 8);
	assert_memory_equal(op->parameters + 8, &number, 4);
	assert_memory_equal(op->parameters + 16, &real_number, 8);
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
	memcpy(buffer, &pointer, 8);
	memcpy(buffer + 8, &number, 4);
	memcpy(buffer + 16, &real_number, 8);
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
	/* 1000 blocks in 1 ms: 100 blocks in the 100 us that others may have to wait. */
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
		assert_int_equal(op->grid[0], 100);
		next += op->grid[0];
	}
	assert_int_equal(next, BLOCKS);
	assert_in_range(count, 19, 20);
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
	assert_true(hidden->saves && hidden->saves % 256 == 0);
	assert_int_equal(hidden->chunk, 1);
	assert_int_equal(op->grid[0], AT_ONCE);
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

/* Somebody above wanted the GPU just now. */
static void somebody_waits(unsigned n)
{
	agent.demand[1]->word = 1;
	launch_call(n, (CUfunction)0x8000, 1);
	assert_true(eventually(atomic_load(&client->waited)));
	agent.demand[1]->word = 0;
}

static void what_costs_too_much_stays_native(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_SLICED);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	driver->form_elapsed_ns = 1040000;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);

	/* But while somebody waits, it does not: he would wait for it. */
	somebody_waits(n);
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));

	/* And a kernel that is no longer than others may have to wait needs no form. */
	kernel = kernel_of(90000, &rewritten);
	for (int i = 0; i < 20; i++) {
		ops_of(n, kernel, BLOCKS);
		assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);
		usleep(2000);
	}
	gone(n);
}

/* Launches in forms, of what was put into streams. */
static unsigned in_form(void)
{
	size_t n = driver->n_ops;
	unsigned found = 0;

	for (size_t i = 0; i < n && i < NULL_OPS; i++)
		found += is_form(&driver->ops[i]) && hidden_of(&driver->ops[i])->demand;
	return found;
}

static void a_hopeless_form_is_launched_once(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(900000, &rewritten);

	(void)state;
	driver->form_elapsed_ns = 1000000000;
	driver->n_ops = 0;
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(in_form(), 1);
	gone(n);
}

static void further_builds_are_tried(void **state)
{
	unsigned n = welcomed(0), wide = 0;
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel;

	(void)state;
	rewritten.variants[WEIR_PERSISTENT][1] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	kernel = kernel_of(900000, &rewritten);
	driver->n_ops = 0;
	assert_true(settles(n, kernel, BLOCKS));
	for (size_t i = 0; i < driver->n_ops; i++)
		wide += driver->ops[i].function == (CUfunction)(uintptr_t)NULL_WIDE;
	assert_true(wide > 1);
	gone(n);
}

static void what_the_driver_refuses_is_not_tried_for_ever(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(900000, &rewritten);

	(void)state;
	driver->forms_fail = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	driver->n_ops = 0;
	assert_true(settles(n, kernel, BLOCKS));
	driver->forms_fail = 0;
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	assert_int_equal(in_form(), 0);
	gone(n);
}

static void work_that_changes_is_compared_at_the_same_time(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	/* It had little to do before; now native and form take ten times as long. */
	launch_call(n, kernel, BLOCKS);
	usleep(30000);
	driver->elapsed_ns = driver->form_elapsed_ns = 2000000;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

/* The choice that was made for a kernel; NULL: none yet. */
static const struct choice *choice_for(CUfunction kernel)
{
	for (size_t i = 0; choose_at(i); i++) {
		const struct choice *choice = choose_at(i);
		if (atomic_load(&choice->key) && choice->geometry.function == kernel)
			return choice;
	}
	return NULL;
}

static bool is_tried(CUfunction kernel)
{
	const struct choice *choice = choice_for(kernel);

	return choice && choice->state == CHOICE_TRYING;
}

static struct lane *first_lane(void)
{
	struct lanes *lanes = atomic_load(&client->lanes);

	return lanes && lanes->state == LANES_READY && atomic_load(&lanes->lane[0].taken)
		       ? &lanes->lane[0]
		       : NULL;
}

/* How many of so many launches are in a form. */
static unsigned forms_of(unsigned n, CUfunction kernel, unsigned count)
{
	unsigned forms = 0;

	for (unsigned i = 0; i < count; i++) {
		driver->n_ops = 0;
		launch_call(n, kernel, BLOCKS);
		forms += in_form() != 0;
		land(0);
		usleep(2000);
	}
	return forms;
}

static void a_form_is_in_use_at_once_if_somebody_waits(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	somebody_waits(n);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	launch_call(n, kernel, BLOCKS); /* has the lane made, if need be */
	assert_true(eventually(first_lane() != NULL));
	land(0);
	assert_in_range(forms_of(n, kernel, 50), 45, 50); /* five to compare */

	/* And stays so when there were enough to compare, if it is no slower. */
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(forms_of(n, kernel, 5), 5);
	gone(n);
}

/* Which build of persistent is in use while somebody waits, if they take so long, and 1 ms as it
 * is. */
static void *in_use_if_somebody_waits(uint64_t narrow_ns, uint64_t wide_ns)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	somebody_waits(n);
	rewritten.variants[WEIR_PERSISTENT][1] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(1000000, &rewritten);
	driver->form_elapsed_ns = narrow_ns;
	driver->wide_elapsed_ns = wide_ns;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	void *used = driver->ops[driver->n_ops - 1].function;
	driver->wide_elapsed_ns = 0;
	gone(n);
	return used;
}

static void who_waits_finds_what_leaves_soonest_or_else_is_fastest(void **state)
{
	(void)state;
	assert_ptr_equal(in_use_if_somebody_waits(1080000, 1020000), FORM(WEIR_PERSISTENT));
	assert_ptr_equal(in_use_if_somebody_waits(1200000, 1120000), NULL_WIDE);
	assert_false((uintptr_t)in_use_if_somebody_waits(1300000, 1300000) >= NULL_FORM);
}

static void launches_take_turns_if_nobody_waits(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(first_lane() != NULL));
	land(0);
	assert_in_range(forms_of(n, kernel, 8), 1, 6);
	gone(n);
}

static void a_launch_that_goes_on_is_known_to_be_long(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(0);
	CUfunction kernel = kernel_of(50000, &rewritten);

	(void)state;
	driver->last_busy = 1;
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	driver->last_busy = 0;

	/* Not one that cannot begin. */
	kernel = kernel_of(50000, &rewritten);
	driver->events_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	driver->events_busy = 0;
	usleep(50000);
	assert_null(choice_for(kernel));
	/* Nor one that is held up by somebody above. */
	agent.demand[0]->word = 1;
	driver->last_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	driver->last_busy = 0;
	agent.demand[0]->word = 0;
	usleep(50000);
	assert_null(choice_for(kernel));
	gone(n);
}

static void a_kernel_that_takes_longer_now_is_chosen_anew(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	const struct choice *choice = choice_for(kernel);
	assert_int_equal(choice->candidates[choice->current].plan.form, WEIR_PERSISTENT);

	/* Blocks of 640 us are to leave inside. */
	driver->elapsed_ns = driver->form_elapsed_ns = 20000000;
	for (int i = 0; i < 200 && choice->made_for != 20000000; i++)
		ops_of(n, kernel, BLOCKS), usleep(6000);
	assert_int_equal(choice->made_for, 20000000);
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(choice->candidates[choice->current].plan.form, WEIR_RESUMABLE);
	gone(n);
}

static void a_form_that_had_more_to_do_is_not_hopeless(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	driver->form_elapsed_ns = 2000000;
	driver->n_ops = 0;
	for (int i = 0; i < 400 && !in_form(); i++) {
		launch_call(n, kernel, BLOCKS);
		land(0);
		usleep(2000);
	}
	assert_int_equal(in_form(), 1);
	driver->elapsed_ns = 2000000; /* and so have native launches from now on */
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

static void evictions_make_chains_longer(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(950000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	assert_in_range(driver->n_ops, 3, 4); /* one continuation */
	land(1);                              /* which it needed: there may be more to come */
	assert_true(eventually(agent.status->form_evictions[WEIR_PERSISTENT] == 1));
	assert_true(agent.status->form_launches[WEIR_PERSISTENT] > 0);
	assert_int_equal(agent.status->evictions, 1);
	assert_int_equal(ops_of(n, kernel, BLOCKS), 1 + 2 * 10); /* 0.95 ms / 100 us */

	for (int i = 0; i < 100; i++)
		ops_of(n, kernel, BLOCKS);
	assert_int_equal(ops_of(n, kernel, BLOCKS), 3); /* it is never evicted now */
	gone(n);
}

/* Launches of which some are sampled, each evicted so often. */
static void evicted_launches(unsigned n, CUfunction kernel, unsigned evictions)
{
	for (int i = 0; i < 40; i++) {
		launch_call(n, kernel, BLOCKS);
		land(evictions);
		usleep(1000);
	}
	assert_true(eventually(!client->sampler.armed));
}

/* A kernel of 1 ms runs 0.52 ms, leaves, and runs 0.52 ms again: 40 us are lost, and 4.6 us for
 * each link of the chain that it else goes through for nothing, 10 at most. */
static void what_an_eviction_costs_is_learned(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	assert_true(eventually(!client->sampler.armed));
	driver->form_elapsed_ns = 520000;
	evicted_launches(n, kernel, 1); /* nobody contends: nothing is asked of the GPU for it */
	assert_int_equal(client->worker.eviction_cost, 0);
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_true(eventually(client->gate_interval == GATE_INTERVAL_CONTENDED));
	evicted_launches(n, kernel, 2);
	assert_int_equal(client->worker.eviction_cost, 0);
	evicted_launches(n, kernel, 1);
	const struct choice *choice = NULL;
	for (size_t i = 0; i < CHOICES_MAX && !(choice && choice->geometry.function == kernel); i++)
		choice = choose_at(i);
	assert_in_range(kernel_find(choice->key)->eviction, 40000 + 4600, 40000 + 46000 + 4600);
	/* Less, as long as it is remembered that the kernel was launched as it is. */
	assert_true(eventually(agent.status->eviction_cost > 5000));
	assert_true(agent.status->eviction_cost < 40000 + 46000 + 4600);
	agent.control->flags = 0;
	gone(n);
}

static struct weir_words *gpu_words(void)
{
	return (void *)driver->words;
}

/* Of a kernel of 2 ms, which by the clock would be done at once. */
static void tickets_say_what_remains(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	struct weir_words *words = gpu_words();

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_true(eventually(!agent.status->outstanding));
	driver->streams_busy = driver->events_busy = 1;
	launch_call(n, kernel, BLOCKS);
	const struct weir_persistent *hidden = hidden_of(&driver->ops[driver->n_ops - 1]);
	/* It has not begun, as far as the words say. */
	words->done = hidden->serial - 1;
	assert_true(eventually(agent.status->remaining == 1));
	words->ticket = hidden->tickets / 2;
	assert_true(eventually(agent.status->remaining > 800000));
	assert_in_range(agent.status->remaining, 800000, 1000000);
	usleep(20000);
	assert_in_range(agent.status->remaining, 800000, 1000000);
	/* All are given out: it may be done. */
	words->ticket = hidden->tickets;
	assert_true(eventually(agent.status->remaining == 1));

	land(0);
	driver->streams_busy = driver->events_busy = 0;
	agent.control->flags = 0;
	memset(words, 0, sizeof(*words));
	gone(n);
}

static void nobody_above(void **state)
{
	unsigned n = welcomed(3);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	for (int i = 0; i < 20; i++) {
		ops_of(n, kernel, BLOCKS);
		assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);
		usleep(2000);
	}
	gone(n);
}

static void those_above_try_nothing_of_no_use(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = kernel_of(300000, &rewritten);
	assert_int_equal(forms_of(n, kernel, 20), 0);
	assert_int_equal(choice_for(kernel)->state, CHOICE_WANTED);
	somebody_waits(n); /* now it is */
	assert_true(eventually(is_tried(kernel)));
	gone(n);
}

static void gates_are_enough_for_short_kernels(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(300000, &rewritten);

	(void)state;
	/* Gates are 400 us apart while nobody above shows demand. */
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);

	/* And 100 us for a while after somebody did. */
	agent.demand[0]->word = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	agent.demand[0]->word = 0;
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

/* Whether the next launch leaves when the agent gives an equal the turn. */
static bool leaves_for_equals(unsigned n, CUfunction kernel)
{
	size_t i = 0;

	ops_of(n, kernel, BLOCKS);
	while (i < driver->n_ops && !is_form(&driver->ops[i]))
		i++;
	assert_true(i < driver->n_ops);
	assert_true(hidden_of(&driver->ops[i])->demand != 0);
	return hidden_of(&driver->ops[i])->hold != 0;
}

static void short_kernels_leave_only_for_equals_that_must_not_wait(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction shorter = kernel_of(1000000, &rewritten);

	(void)state;
	assert_true(settles(n, shorter, BLOCKS));
	CUfunction longer = kernel_of(3000000, &rewritten);
	assert_true(settles(n, longer, BLOCKS));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_false(leaves_for_equals(n, shorter));
	assert_true(leaves_for_equals(n, longer));
	agent.control->flags |= WEIR_CONTROL_URGENT;
	assert_true(eventually(atomic_load(&client->waited) == WAITED_ALWAYS));
	assert_true(leaves_for_equals(n, shorter));
	agent.control->flags = 0;
	gone(n);
}

static void lanes_outlive_streams(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);
	struct lane *lane;

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	lane = &atomic_load(&client->lanes)->lane[0];
	launch_call(n, kernel, BLOCKS);
	assert_int_equal(cuStreamDestroy_v2(STREAM(n, 1)), CUDA_SUCCESS);
	usleep(50000);
	assert_int_equal(atomic_load(&lane->taken), 1); /* its words are still in use */
	land(0);
	assert_true(eventually(!atomic_load(&lane->taken)));

	/* The next stream gets it, and goes on with its serials. */
	uint32_t last = atomic_load(&lane->last);
	launch_call(n, kernel, BLOCKS); /* makes the stream's record anew */
	assert_true(eventually(atomic_load(&lane->taken)));
	ops_of(n, kernel, BLOCKS);
	assert_int_equal(hidden_of(&driver->ops[driver->n_ops - 1])->serial, last + 1);
	gone(n);
}

static void *many_launches(void *kernel)
{
	for (int i = 0; i < 150; i++)
		cuLaunchKernel(kernel, BLOCKS, 1, 1, 64, 1, 1, 0, STREAM(contexts, 1), params,
			       NULL);
	return NULL;
}

static void chains_are_not_mixed(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	pthread_t threads[3];
	uint32_t serial = 0, links = 0;

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	driver->n_ops = 0;
	for (size_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, many_launches, kernel);
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < driver->n_ops; i++) {
		const struct null_op *op = &driver->ops[i];
		if (op->kind != NULL_LAUNCH)
			continue;
		assert_true(is_form(op));
		if (hidden_of(op)->serial != serial)
			assert_int_equal(links % 3, 0);
		serial = hidden_of(op)->serial;
		links++;
	}
	assert_int_equal(links, 3 * 3 * 150);
	land(0);
	gone(n);
}

static int begin(void **state)
{
	(void)state;
	fake_agent_init(&agent);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	fake_agent_deinit(&agent);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain),
		cmocka_unit_test(packed_parameters),
		cmocka_unit_test(slices),
		cmocka_unit_test(saves),
		cmocka_unit_test(blocks_that_may_wait_for_each_other),
		cmocka_unit_test(what_costs_too_much_stays_native),
		cmocka_unit_test(a_hopeless_form_is_launched_once),
		cmocka_unit_test(further_builds_are_tried),
		cmocka_unit_test(what_the_driver_refuses_is_not_tried_for_ever),
		cmocka_unit_test(work_that_changes_is_compared_at_the_same_time),
		cmocka_unit_test(a_form_is_in_use_at_once_if_somebody_waits),
		cmocka_unit_test(who_waits_finds_what_leaves_soonest_or_else_is_fastest),
		cmocka_unit_test(launches_take_turns_if_nobody_waits),
		cmocka_unit_test(a_launch_that_goes_on_is_known_to_be_long),
		cmocka_unit_test(a_kernel_that_takes_longer_now_is_chosen_anew),
		cmocka_unit_test(a_form_that_had_more_to_do_is_not_hopeless),
		cmocka_unit_test(evictions_make_chains_longer),
		cmocka_unit_test(what_an_eviction_costs_is_learned),
		cmocka_unit_test(tickets_say_what_remains),
		cmocka_unit_test(nobody_above),
		cmocka_unit_test(those_above_try_nothing_of_no_use),
		cmocka_unit_test(gates_are_enough_for_short_kernels),
		cmocka_unit_test(short_kernels_leave_only_for_equals_that_must_not_wait),
		cmocka_unit_test(lanes_outlive_streams),
		cmocka_unit_test(chains_are_not_mixed),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	cuInit(0);
	driver = dlsym(dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD), "null_driver");
	return cmocka_run_group_tests(tests, begin, finish);
}
