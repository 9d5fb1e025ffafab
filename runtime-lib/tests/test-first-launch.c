/* The first launch of a kernel that nobody knows, below others. */
#include "client/request.h"
#include "formed.h"

#include <weir/log.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define FOR_EVER (3600ull * NS_PER_S)
#define ALL      (1u << WEIR_SLICED | 1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE)

static bool first_is_in_form(unsigned n, CUfunction kernel)
{
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	return in_form() != 0;
}

static unsigned n_ops(enum null_op_kind kind)
{
	unsigned n = 0;

	for (size_t i = 0; i < driver->n_ops && i < NULL_OPS; i++)
		n += driver->ops[i].kind == kind;
	return n;
}

static bool is_known(CUfunction kernel)
{
	const struct tuned_kernel *tuned = tuned_for(kernel);

	return tuned && !atomic_load(&tuned->tuner.assumed);
}

static bool has_time(CUfunction kernel, unsigned blocks)
{
	const struct tuned_kernel *tuned;

	for (size_t i = 0; (tuned = tuning_at(i)); i++) {
		uint64_t key = atomic_load(&tuned->key);
		if (key && tuned->geometry.function == kernel &&
		    tuned->geometry.grid[0] == blocks && kernel_mean(kernel_find(key)))
			return true;
	}
	return false;
}

/* The kernel whose settling is watched for, its blocks, and whether its time was known then. */
static struct {
	_Atomic(CUfunction) kernel;
	unsigned blocks;
	_Atomic int settled, timed;
	_Atomic int said; /* that the process has waited for long enough */
} watched;

/* The log tells of a form before launches may know that it is settled. */
ssize_t write(int fd, const void *data, size_t n)
{
	CUfunction kernel = atomic_load(&watched.kernel);

	if (kernel && fd == STDERR_FILENO && memmem(data, n, "by its profile", 14)) {
		atomic_store(&watched.timed, has_time(kernel, watched.blocks));
		atomic_fetch_add(&watched.settled, 1);
	}
	if (fd == STDERR_FILENO && memmem(data, n, "for long enough", 15))
		atomic_fetch_add(&watched.said, 1);
	return syscall(SYS_write, fd, data, n);
}

/* A client below another one, which launches a kernel of @ns and waits for its forms. */
struct launcher {
	unsigned n;
	struct rewritten rewritten;
	CUfunction kernel;
};

static void launcher_begin(struct launcher *l, uint64_t ns)
{
	l->n = welcomed(0);
	l->rewritten = in_forms(ALL);
	l->kernel = kernel_of(ns, &l->rewritten);
	first_launch_wait_ns = FOR_EVER;
}

static void a_long_kernel_begins_in_the_form_that_leaves_soonest(void **state)
{
	struct launcher l;

	(void)state;
	launcher_begin(&l, 2000000);
	assert_true(first_is_in_form(l.n, l.kernel));
	const struct null_op *first = driver->ops;
	while (first->kind != NULL_LAUNCH)
		first++;
	assert_ptr_equal(first->function, FORM(WEIR_RESUMABLE));
	assert_int_equal(hidden_of(first)->chunk, 1);
	/* It can leave as often as that, although nobody waits now. */
	assert_int_equal(in_form(), CHAIN_UNKNOWN);
	/* The next one does not wait, and is in that form as long as none was measured. */
	first_launch_wait_ns = 0;
	assert_true(first_is_in_form(l.n, l.kernel));
	land(0);
	assert_true(eventually(is_known(l.kernel)));
	assert_in_range(tuned_for(l.kernel)->tuner.native, 1900000, 2000000);
	assert_true(settles(l.n, l.kernel, BLOCKS));
	gone(l.n);
}

/* The driver's queue is four times as long then. */
static void a_longer_queue_has_a_longer_chain(void **state)
{
	struct launcher l;

	(void)state;
	setenv("CUDA_SCALE_LAUNCH_QUEUES", "4x", 1);
	tuning_init();
	launcher_begin(&l, 2000000);
	driver->launches = 0;
	assert_true(first_is_in_form(l.n, l.kernel));
	assert_int_equal(driver->launches, 4 * CHAIN_UNKNOWN + 1);
	land(0);
	unsetenv("CUDA_SCALE_LAUNCH_QUEUES");
	tuning_init();
	gone(l.n);
}

static void a_short_kernel_runs_natively_afterwards(void **state)
{
	struct launcher l;

	(void)state;
	launcher_begin(&l, 20000);
	assert_true(first_is_in_form(l.n, l.kernel));
	land(0);
	assert_true(eventually(is_known(l.kernel)));
	for (int i = 0; i < 20; i++) {
		assert_false(first_is_in_form(l.n, l.kernel));
		land(0);
	}
	assert_int_equal(tuned_for(l.kernel)->tuner.state, AUTOTUNE_SETTLED);
	gone(l.n);
}

/* The others are still being compiled. Nothing is compared before they are there. */
static void one_form_is_enough_to_begin(void **state)
{
	struct rewritten soonest = in_forms(1u << WEIR_RESUMABLE);
	struct launcher l;

	(void)state;
	launcher_begin(&l, 2000000);
	struct function *function = function_find(client, l.kernel);
	atomic_store(&function->soonest, &soonest);
	atomic_store(&function->rewritten, NULL);
	atomic_store(&function->state, FUNCTION_REQUESTED);
	assert_true(first_is_in_form(l.n, l.kernel));
	land(0);
	assert_true(eventually(is_known(l.kernel)));
	assert_true(first_is_in_form(l.n, l.kernel));
	land(0);
	assert_int_equal(tuned_for(l.kernel)->tuner.state, AUTOTUNE_WANTED);
	atomic_store(&function->rewritten, &l.rewritten);
	atomic_store(&function->state, FUNCTION_READY);
	assert_true(settles(l.n, l.kernel, BLOCKS));
	assert_ptr_equal(config_in_use(tuned_for(l.kernel), WAITING_URGENT)->rewritten,
			 &l.rewritten);
	gone(l.n);
}

/* Some kernels have a geometry for each launch. */
static void a_kernel_is_short_in_other_geometries_too(void **state)
{
	struct kernel_profiles *profiles = calloc(1, sizeof(*profiles));
	struct launcher l;

	(void)state;
	assert_non_null(profiles);
	launcher_begin(&l, 30000);
	atomic_store(&function_find(client, l.kernel)->profiles, profiles);
	assert_true(first_is_in_form(l.n, l.kernel));
	land(0);
	assert_true(eventually(is_known(l.kernel)));
	assert_true(eventually(*(volatile uint32_t *)&profiles->n == 1));
	driver->streams_busy = driver->events_busy = 1;
	driver->n_ops = 0;
	log_set_level(LOG_DEBUG);
	watched.blocks = 3 * BLOCKS;
	atomic_store(&watched.kernel, l.kernel);
	launch_call(l.n, l.kernel, 3 * BLOCKS);
	atomic_store(&watched.kernel, NULL);
	log_set_level(LOG_WARNING);
	assert_int_equal(in_form(), 0);
	assert_int_equal(atomic_load(&watched.settled), 1);
	assert_true(atomic_load(&watched.timed));
	/* Nor has each a gate: until one is measured their time is three times as long. */
	assert_true(has_time(l.kernel, 3 * BLOCKS));
	for (int i = 0; i < 5; i++)
		launch_call(l.n, l.kernel, 3 * BLOCKS);
	assert_int_equal(n_ops(NULL_LAUNCH), 6);
	assert_in_range(n_ops(NULL_GATE), 0, 3);
	/* But that they end is not known. */
	assert_false(stream_will_end(stream_find(STREAM(l.n, 1), false)));
	driver->streams_busy = driver->events_busy = 0;
	/* With so many blocks it need not be short. */
	driver->n_ops = 0;
	launch_call(l.n, l.kernel, 10 * BLOCKS);
	assert_int_not_equal(in_form(), 0);
	land(0);
	gone(l.n);
}

/* Evictions make a sample longer: it says nothing about the kernel. */
static void an_evicted_launch_tells_nothing(void **state)
{
	struct launcher l;

	(void)state;
	launcher_begin(&l, 20000);
	assert_true(first_is_in_form(l.n, l.kernel));
	land(3);
	assert_true(eventually(!sampler_of(client)->armed));
	assert_false(is_known(l.kernel));
	assert_true(first_is_in_form(l.n, l.kernel));
	land(0);
	assert_true(eventually(is_known(l.kernel)));
	gone(l.n);
}

static void with_nobody_above_it_runs_as_it_is(void **state)
{
	struct launcher l;

	(void)state;
	launcher_begin(&l, 2000000);
	agent.control->above = 0;
	assert_false(first_is_in_form(l.n, l.kernel));
	gone(l.n);
}

static void a_kernel_without_forms_does_not_wait(void **state)
{
	unsigned n = welcomed(0);
	CUfunction kernel = kernel_of(2000000, NULL);

	(void)state;
	first_launch_wait_ns = FOR_EVER;
	atomic_store(&function_find(client, kernel)->state, FUNCTION_REFUSED);
	assert_false(first_is_in_form(n, kernel));
	gone(n);
}

/* The agent is busy. */
static void it_waits_for_a_while_only(void **state)
{
	unsigned n = welcomed(0);
	CUfunction kernel = kernel_of(2000000, NULL);

	(void)state;
	first_launch_wait_ns = 10 * NS_PER_MS;
	atomic_store(&function_find(client, kernel)->state, FUNCTION_REQUESTED);
	assert_false(first_is_in_form(n, kernel));
	/* And once. */
	first_launch_wait_ns = FOR_EVER;
	assert_false(first_is_in_form(n, kernel));
	gone(n);
}

/* Then a process does not wait again, and the log says so. */
static void a_process_waits_for_a_while_only(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(ALL);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	uint64_t altogether = first_launch_altogether_ns;

	(void)state;
	first_launch_wait_ns = FOR_EVER;
	first_launch_altogether_ns = 0;
	log_set_level(LOG_INFO);
	atomic_store(&watched.said, 0);
	assert_false(first_is_in_form(n, kernel));
	assert_int_equal(atomic_load(&watched.said), 1);
	log_set_level(LOG_WARNING);
	first_launch_altogether_ns = altogether;
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_kernel_begins_in_the_form_that_leaves_soonest),
		cmocka_unit_test(a_longer_queue_has_a_longer_chain),
		cmocka_unit_test(a_short_kernel_runs_natively_afterwards),
		cmocka_unit_test(one_form_is_enough_to_begin),
		cmocka_unit_test(a_kernel_is_short_in_other_geometries_too),
		cmocka_unit_test(an_evicted_launch_tells_nothing),
		cmocka_unit_test(with_nobody_above_it_runs_as_it_is),
		cmocka_unit_test(a_kernel_without_forms_does_not_wait),
		cmocka_unit_test(it_waits_for_a_while_only),
		cmocka_unit_test(a_process_waits_for_a_while_only),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
