/* Launches with a bounded number of workers, as the driver sees them. On the null driver. */
#include "formed.h"

#include "weir/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PARTS     12345u
#define LEARNS_NS 600000000u /* samples of another time count after 0.2 s */

static struct rewritten rewritten;
static unsigned n;

/* Nobody waits, so the kernel would run natively. */
static CUfunction settled(unsigned forms, unsigned blocks)
{
	agent.control->workers = 0;
	n = welcomed(1);
	rewritten = in_forms(forms);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	assert_true(settles(n, kernel, blocks));
	return kernel;
}

static void bound(CUfunction kernel, unsigned blocks, uint32_t workers)
{
	agent.control->workers = workers;
	assert_true(eventually(atomic_load(&waiters_of(client)->waiting) == WAITING_URGENT));
	ops_of(n, kernel, blocks); /* may begin with a gate */
	ops_of(n, kernel, blocks);
}

/* All launches of a chain have so many workers, which draw all tickets of the grid. */
static void has_workers(uint32_t workers)
{
	unsigned found = 0;

	for (size_t i = 0; i < driver->n_ops && i < NULL_OPS; i++) {
		if (!is_form(&driver->ops[i]))
			continue;
		const struct weir_persistent *hidden = hidden_of(&driver->ops[i]);
		struct weir_persistent cut = *hidden;
		assert_int_equal(driver->ops[i].grid[0], workers);
		assert_int_equal(hidden->dealt, workers);
		assert_true(hidden->across <= workers);
		weir_cut(&cut, hidden->chunk, workers, !hidden->ahead, WEIR_TICKETS_IN_ROW);
		assert_int_equal(cut.tickets, hidden->tickets);
		found++;
	}
	assert_true(found >= 2);
}

static void bounds_workers(void **state)
{
	static const unsigned forms[] = {WEIR_PERSISTENT, WEIR_RESUMABLE};

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		CUfunction kernel = settled(1u << forms[k], BLOCKS);
		bound(kernel, BLOCKS, 1);
		has_workers(NULL_SMS);
		bound(kernel, BLOCKS, NULL_OCCUPANCY);
		has_workers(AT_ONCE);
		bound(kernel, BLOCKS, UINT32_MAX);
		has_workers(AT_ONCE);
		bound(kernel, BLOCKS, 1);
		agent.control->workers = 0;
		ops_of(n, kernel, BLOCKS);
		has_workers(AT_ONCE); /* still in the form, for a while */
		gone(n);
	}
}

/* Its blocks may wait for each other. */
static void bounds_no_grid_that_fits(void **state)
{
	CUfunction kernel = settled(1u << WEIR_RESUMABLE, AT_ONCE);

	(void)state;
	bound(kernel, AT_ONCE, 1);
	has_workers(AT_ONCE);
	gone(n);
}

/* Bounded launches are a step ahead of others, whose waiting blocks would take all SMs. */
static void goes_ahead(void **state)
{
	driver->mps = 1;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);

	(void)state;
	agent.control->above = 0;
	bound(kernel, BLOCKS, 1);
	for (size_t i = 0; i < driver->n_ops; i++)
		if (is_form(&driver->ops[i]))
			assert_int_equal(driver->ops[i].priority, -1);
	/* A form needs the parameters, so this one is native, and would take all SMs. */
	driver->n_ops = 0;
	cuLaunchKernel(kernel, BLOCKS, 1, 1, 64, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	unsigned natives = 0;
	for (size_t i = 0; i < driver->n_ops; i++) {
		assert_false(is_form(&driver->ops[i]));
		if (driver->ops[i].kind != NULL_LAUNCH)
			continue;
		assert_int_equal(driver->ops[i].priority, 1);
		natives++;
	}
	assert_int_equal(natives, 1);
	agent.control->workers = 0;
	ops_of(n, kernel, BLOCKS);
	for (size_t i = 0; i < driver->n_ops; i++)
		if (is_form(&driver->ops[i]))
			assert_int_equal(driver->ops[i].priority, 1);
	gone(n);
	driver->mps = 0;
}

/* A launch with few workers takes long. That says nothing of the kernel: its time stays what it
 * was, and it is not tuned for another one. */
static void learns_nothing_from_bounded_launches(void **state)
{
	(void)state;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);
	const struct tuned_kernel *tuned = tuned_for(kernel);
	struct kernel_time *time = kernel_find(atomic_load(&tuned->key));
	size_t tried = tuned->tuner.n;
	uint64_t predicted = kernel_mean(time);
	bound(kernel, BLOCKS, 1);
	driver->form_elapsed_ns = 10000000;
	for (uint64_t end = client_now() + LEARNS_NS; client_now() < end;) {
		launch_call(n, kernel, BLOCKS);
		land(0);
		usleep(1000);
	}
	assert_int_equal(tuned->tuner.state, AUTOTUNE_SETTLED);
	assert_int_equal(tuned->tuner.n, tried);
	assert_true(kernel_mean(time) < 2 * predicted);
	gone(n);
}

/* Another client has come since the launch, and its kernel runs beside it. */
static void learns_nothing_beside_others(void **state)
{
	(void)state;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);
	struct kernel_time *time = kernel_find(atomic_load(&tuned_for(kernel)->key));
	uint64_t predicted = kernel_mean(time);
	driver->elapsed_ns = driver->form_elapsed_ns = 10000000;
	for (uint64_t end = client_now() + LEARNS_NS; client_now() < end;) {
		agent.control->workers = 0;
		launch_call(n, kernel, BLOCKS);
		agent.control->workers = 4;
		land(0);
		usleep(2000);
	}
	assert_true(kernel_mean(time) < 2 * predicted);
	gone(n);
}

/* In the client's turn, the kernel of the one before ends. Some launches take longer by that;
 * others do not, and their time counts. */
static void learns_the_least_in_turns(void **state)
{
	(void)state;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);
	struct kernel_time *time = kernel_find(atomic_load(&tuned_for(kernel)->key));
	uint64_t predicted = kernel_mean(time),
		 usual[] = {driver->elapsed_ns, driver->form_elapsed_ns};
	unsigned i = 0;
	agent.control->flags |= WEIR_CONTROL_MEASURED;
	for (uint64_t end = client_now() + LEARNS_NS; client_now() < end; i++) {
		driver->elapsed_ns = i % 5 ? 10000000 : usual[0];
		driver->form_elapsed_ns = i % 5 ? 10000000 : usual[1];
		launch_call(n, kernel, BLOCKS);
		land(0);
		usleep(2000);
	}
	assert_true(kernel_mean(time) < 2 * predicted);
	agent.control->flags &= ~WEIR_CONTROL_MEASURED;
	gone(n);
}

/* The agent finds with it what fits beside the kernel. */
static void tells_what_a_worker_takes(void **state)
{
	(void)state;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);
	bound(kernel, BLOCKS, 1);
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		assert_true(eventually(agent.status->worker_parts[i] > 0));
	uint32_t most = 0;
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		most = agent.status->worker_parts[i] > most ? agent.status->worker_parts[i] : most;
	assert_int_equal(WEIR_SM_PARTS / most, NULL_OCCUPANCY);
	gone(n);
}

/* Alone or in turns the kernel may have another form, with other registers. */
static void tells_of_the_form_beside_others(void **state)
{
	(void)state;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);
	bound(kernel, BLOCKS, 1);
	struct launch_config *beside =
		(struct launch_config *)config_in_use(tuned_for(kernel), WAITING_URGENT);
	const struct launch_config *latest = &tuned_for(kernel)->tuner.candidates[0].config;
	assert_ptr_not_equal(beside, latest);
	beside->parts[1] = PARTS;
	atomic_store(&preempting_of(client)->latest, latest);
	assert_true(eventually(agent.status->worker_parts[1] == PARTS));
	gone(n);
}

/* A context's slot is used again, and with it what the former context's launches left there. */
static void tells_nothing_of_a_former_context(void **state)
{
	(void)state;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);
	bound(kernel, BLOCKS, 1);
	const struct client *former = client;
	assert_true(eventually(agent.status->worker_parts[0] > 0));
	gone(n);
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		agent.status->worker_parts[i] = 0; /* the next one has a page of its own */
	agent.status->launches = 0;
	agent.control->workers = 0;
	n = welcomed(1);
	assert_ptr_equal(client, former);
	launch_call(n, (CUfunction)(uintptr_t)0x8000, 1);
	assert_true(eventually(agent.status->launches >= 2));
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		assert_int_equal(agent.status->worker_parts[i], 0);
	gone(n);
}

/* The record of a kernel whose code is gone may be another context's kernel by now. */
static void tells_nothing_of_another_context(void **state)
{
	(void)state;
	CUfunction kernel = settled(1u << WEIR_PERSISTENT, BLOCKS);
	bound(kernel, BLOCKS, 1);
	struct preempting *other = preempting_of(client);
	const struct launch_config *config = atomic_load(&other->latest);
	assert_non_null(config);
	atomic_store(&other->latest, NULL);
	int connection = agent.client;
	agent.control->workers = 0;
	unsigned another = welcomed(1);
	assert_ptr_not_equal(preempting_of(client), other);
	usleep(100000); /* the worker's looks with what it knew before are over */
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		agent.status->worker_parts[i] = 0; /* both have this page */
	atomic_store(&preempting_of(client)->latest, config);
	launch_call(another, (CUfunction)(uintptr_t)0x8000, 1);
	usleep(200000);
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		assert_int_equal(agent.status->worker_parts[i], 0);
	gone(another);
	agent.client = connection;
	gone(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_workers),
		cmocka_unit_test(bounds_no_grid_that_fits),
		cmocka_unit_test(goes_ahead),
		cmocka_unit_test(learns_nothing_from_bounded_launches),
		cmocka_unit_test(learns_nothing_beside_others),
		cmocka_unit_test(learns_the_least_in_turns),
		cmocka_unit_test(tells_what_a_worker_takes),
		cmocka_unit_test(tells_of_the_form_beside_others),
		cmocka_unit_test(tells_nothing_of_a_former_context),
		cmocka_unit_test(tells_nothing_of_another_context),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
