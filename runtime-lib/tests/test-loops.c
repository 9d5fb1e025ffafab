/* What libweir and a loop tell each other (weir/loop-link.h), on the null driver. */
#include "launch/loops.h"

#include "client/worker.h"

#include "inside.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { HIGH = 1, LOW = 2 }; /* streams */

static uintptr_t hold_word(void)
{
	return (uintptr_t)atomic_load(&client->binding)->control->memory +
	       offsetof(struct weir_control_page, hold);
}

/* The kernel looks at what the gate before it waits for. */
static void words_are_those_of_its_gates(void **state)
{
	struct weir_loop_words words, again;

	(void)state;
	unsigned n = context_welcomed(1);
	atomic_store(&agent.control->flags, WEIR_CONTROL_HOLDABLE);
	driver->n_ops = 0;
	assert_int_equal(weir_loops_gate(STREAM(n, HIGH), &words), 0);
	assert_int_equal(words.demand, (uintptr_t)atomic_load(&client->binding)->wait->memory);
	assert_true(words.demand_mask == UINT64_MAX);
	assert_int_equal(words.hold, hold_word());
	size_t gates = 0;
	for (size_t i = 0; i < driver->n_ops; i++) {
		if (driver->ops[i].kind != NULL_GATE)
			continue;
		gates++;
		assert_true(driver->ops[i].address == words.demand ||
			    driver->ops[i].address == words.hold);
	}
	assert_true(gates > 0);

	driver->n_ops = 0;
	assert_int_equal(weir_loops_words(STREAM(n, HIGH), &again), 0);
	assert_memory_equal(&words, &again, sizeof(words));
	assert_int_equal(driver->n_ops, 0);
	/* A hold may begin at any time. */
	atomic_store(&agent.control->flags, 0);
	assert_int_equal(weir_loops_words(STREAM(n, HIGH), &again), 0);
	assert_memory_equal(&words, &again, sizeof(words));
	context_gone(n);
}

static void nobody_is_above_the_highest_level(void **state)
{
	struct weir_loop_words words;

	(void)state;
	unsigned n = context_welcomed(WEIR_LEVELS - 1);
	driver->n_ops = 0;
	assert_int_equal(weir_loops_gate(STREAM(n, HIGH), &words), 0);
	assert_int_equal(words.demand, 0);
	assert_int_equal(words.hold, hold_word());
	context_gone(n);
}

static bool says(uint32_t loops, uint32_t on_gpu, uint32_t network, uint64_t evictions,
		 uint64_t blocked, uint64_t time)
{
	const struct weir_status_page *status = agent.status;

	worker_wake();
	return status->loops == loops && status->loops_on_gpu == on_gpu &&
	       status->loops_waiting[1] == network && status->evictions == evictions &&
	       status->loops_blocked == blocked && status->loops_blocked_time == time;
}

static void the_status_page_adds_loops_up(void **state)
{
	struct weir_loop_state a = {
		.size = sizeof(a), .on_gpu = 1, .waiting = {0, 3}, .evictions = 5};
	struct weir_loop_state b = {
		.size = sizeof(b), .waiting = {0, 4}, .blocked = 2, .blocked_time = 900};

	(void)state;
	unsigned n = context_welcomed(1);
	assert_int_equal(weir_loops_begin(STREAM(n, HIGH), &a), 0);
	assert_int_equal(weir_loops_begin(STREAM(n, LOW), &b), 0);
	assert_true(eventually(says(2, 1, 7, 5, 2, 900)));
	a.evictions = 6;
	a.on_gpu = 0;
	assert_true(eventually(says(2, 0, 7, 6, 2, 900)));
	/* What has ended is still counted. */
	weir_loops_end(STREAM(n, HIGH), &a);
	memset(&a, 0xff, sizeof(a));
	assert_true(eventually(says(1, 0, 4, 6, 2, 900)));
	weir_loops_end(STREAM(n, LOW), &b);
	assert_true(eventually(says(0, 0, 0, 6, 2, 900)));
	context_gone(n);
}

static void there_is_a_limit(void **state)
{
	struct weir_loop_state many[LOOPS_MAX + 1];

	(void)state;
	unsigned n = context_welcomed(1);
	for (size_t i = 0; i <= LOOPS_MAX; i++) {
		many[i] = (struct weir_loop_state){.size = sizeof(many[i])};
		assert_int_equal(weir_loops_begin(STREAM(n, HIGH), &many[i]),
				 i < LOOPS_MAX ? 0 : -ENOBUFS);
	}
	for (size_t i = 0; i <= LOOPS_MAX; i++)
		weir_loops_end(STREAM(n, HIGH), &many[i]);
	struct weir_loop_state older = {.size = WEIR_LOOP_STATE_FIRST - 8};
	assert_int_equal(weir_loops_begin(STREAM(n, HIGH), &older), -ENOBUFS);
	context_gone(n);
}

static bool executed(uint64_t ns)
{
	worker_wake();
	return agent.status->executed == ns && agent.status->gpu_time == ns;
}

/* How long a loop's launch will be on the GPU cannot be predicted. */
static void the_time_of_loops_is_what_they_say(void **state)
{
	struct weir_loop_state loop = {.size = sizeof(loop), .ran = 7000};
	struct weir_loop_state first = {.size = WEIR_LOOP_STATE_FIRST, .ran = 1};

	(void)state;
	unsigned n = context_welcomed(1);
	assert_int_equal(weir_loops_begin(STREAM(n, HIGH), &loop), 0);
	assert_int_equal(weir_loops_begin(STREAM(n, LOW), &first), 0);
	assert_true(eventually(executed(7000)));
	struct stream *stream = stream_find(STREAM(n, HIGH), false);
	struct stream *ordinary = stream_find(STREAM(n, LOW), false);
	atomic_store(&stream->predicted, 500);
	atomic_store(&stream->executed, 500);
	atomic_store(&ordinary->predicted, 30);
	atomic_store(&ordinary->executed, 30);
	assert_true(eventually(executed(7030)));
	loop.ran = 9000;
	assert_true(eventually(executed(9030)));
	weir_loops_end(STREAM(n, HIGH), &loop);
	assert_true(eventually(executed(9030)));
	weir_loops_end(STREAM(n, LOW), &first);
	context_gone(n);
}

/* A loop counts by the host's clock also while the hardware has stopped its kernel. */
static void a_stopped_loop_does_not_run(void **state)
{
	struct weir_loop_state loop = {.size = sizeof(loop), .ran = 7000};

	(void)state;
	unsigned n = context_welcomed(1);
	assert_int_equal(weir_loops_begin(STREAM(n, HIGH), &loop), 0);
	assert_true(eventually(executed(7000)));
	atomic_store(&agent.control->stopped_until, UINT64_MAX);
	atomic_store(&loop.ran, 9000);
	worker_wake();
	usleep(20000);
	assert_true(executed(7000));
	/* Nothing of that is told later. */
	atomic_store(&agent.control->stopped_until, 0);
	worker_wake();
	usleep(20000);
	assert_true(executed(7000));
	atomic_store(&loop.ran, 9500);
	assert_true(eventually(executed(7500)));
	weir_loops_end(STREAM(n, HIGH), &loop);
	assert_true(eventually(executed(7500)));
	context_gone(n);
}

static void launch(unsigned n, int stream, uintptr_t function)
{
	cuLaunchKernel((CUfunction)function, 1, 1, 1, 32, 1, 1, 0, STREAM(n, stream), NULL, NULL);
}

static bool is_demanded(void)
{
	return atomic_load(&agent.demand[0]->word) != 0;
}

/* In a new context, which it returns. */
static unsigned loop_begins(const struct weir_loop_state *loop)
{
	unsigned n = context_welcomed(1);

	assert_true(eventually(!is_demanded()));
	assert_int_equal(weir_loops_begin(STREAM(n, HIGH), loop), 0);
	return n;
}

/* Although the next launch is expected soon. */
static void demand_ends_when_a_loop_has_left(void **state)
{
	struct weir_loop_state loop = {.size = sizeof(loop)};

	(void)state;
	unsigned n = loop_begins(&loop);
	for (int i = 0; i < 3; i++) {
		driver->streams_busy = driver->events_busy = 1;
		launch(n, HIGH, 0x9000);
		assert_true(is_demanded());
		atomic_store(&demand_of(client)->gap, 90000);
		driver->streams_busy = driver->events_busy = 0;
		weir_loops_left(STREAM(n, HIGH));
		assert_false(is_demanded());
		assert_int_equal(atomic_load(&agent.status->outstanding), 0);
	}
	/* Other work of the client goes on. */
	driver->streams_busy = driver->events_busy = 1;
	launch(n, LOW, 0x9100);
	driver->streams_busy = driver->events_busy = 0;
	weir_loops_left(STREAM(n, HIGH));
	driver->streams_busy = driver->events_busy = 1;
	assert_true(is_demanded());
	driver->streams_busy = driver->events_busy = 0;
	assert_true(eventually(!is_demanded()));
	weir_loops_end(STREAM(n, HIGH), &loop);
	context_gone(n);
}

/* The client has work while the driver says that its streams are busy, and not after that. */
static void expect_work_until_the_end(void)
{
	assert_true(eventually(is_demanded()));
	usleep(50000);
	assert_true(is_demanded());
	assert_int_equal(atomic_load(&agent.status->outstanding), 1);
	driver->streams_busy = driver->events_busy = 0;
	assert_true(eventually(!is_demanded()));
	assert_true(eventually(!atomic_load(&agent.status->outstanding)));
}

/* Its blocks say that they leave, and the GPU switches to another process before they have ended.
 */
static void a_loop_that_does_not_end_has_work(void **state)
{
	struct weir_loop_state loop = {.size = sizeof(loop)};

	(void)state;
	unsigned n = loop_begins(&loop);
	driver->streams_busy = driver->events_busy = 1;
	launch(n, HIGH, 0x9000);
	weir_loops_left(STREAM(n, HIGH));
	weir_loops_end(STREAM(n, HIGH), &loop);
	expect_work_until_the_end();
	context_gone(n);
}

/* One that has ended stays idle, also if it is launched again. */
static void a_loop_that_has_ended_is_idle(void **state)
{
	struct weir_loop_words words;
	struct weir_loop_state loop = {.size = sizeof(loop)};

	(void)state;
	unsigned n = loop_begins(&loop);
	for (int i = 0; i < 3; i++) {
		driver->streams_busy = driver->events_busy = 1;
		assert_int_equal(weir_loops_gate(STREAM(n, HIGH), &words), 0);
		launch(n, HIGH, 0x9000);
		driver->streams_busy = driver->events_busy = 0;
		weir_loops_left(STREAM(n, HIGH));
		usleep(30000);
		driver->streams_busy = driver->events_busy = 1;
		usleep(30000);
		assert_false(is_demanded());
		assert_int_equal(atomic_load(&agent.status->outstanding), 0);
	}
	driver->streams_busy = driver->events_busy = 0;
	weir_loops_end(STREAM(n, HIGH), &loop);
	context_gone(n);
}

/* The client's first launch, which the agent's answer comes behind. */
static void what_runs_when_the_level_comes_is_work(void **state)
{
	(void)state;
	driver->streams_busy = driver->events_busy = 1;
	unsigned n = context_welcomed(1);
	expect_work_until_the_end();
	context_gone(n);
}

static _Atomic int telling;

static void *tell(void *status)
{
	while (atomic_load(&telling))
		loops_tell(client, status, false);
	return NULL;
}

/* A forked child, where another thread may have held the lock. */
static int child_of_fork(void)
{
	struct weir_status_page status = {0};
	pid_t pid = fork();
	int end;

	if (pid == 0) {
		alarm(60); /* it hangs */
		client_fork();
		loops_tell(client, &status, false);
		_exit(status.loops != 0);
	}
	assert_int_equal(waitpid(pid, &end, 0), pid);
	return end;
}

static void a_forked_child_has_no_loops(void **state)
{
	struct weir_loop_state loop = {.size = sizeof(loop)};
	struct weir_status_page status = {0};
	pthread_t thread;

	(void)state;
	unsigned n = context_welcomed(1);
	assert_int_equal(weir_loops_begin(STREAM(n, HIGH), &loop), 0);
	atomic_store(&telling, 1);
	assert_int_equal(pthread_create(&thread, NULL, tell, &status), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(child_of_fork(), 0);
	atomic_store(&telling, 0);
	pthread_join(thread, NULL);
	weir_loops_end(STREAM(n, HIGH), &loop);
	context_gone(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_those_of_its_gates),
		cmocka_unit_test(nobody_is_above_the_highest_level),
		cmocka_unit_test(the_status_page_adds_loops_up),
		cmocka_unit_test(there_is_a_limit),
		cmocka_unit_test(the_time_of_loops_is_what_they_say),
		cmocka_unit_test(a_stopped_loop_does_not_run),
		cmocka_unit_test(demand_ends_when_a_loop_has_left),
		cmocka_unit_test(a_loop_that_does_not_end_has_work),
		cmocka_unit_test(a_loop_that_has_ended_is_idle),
		cmocka_unit_test(what_runs_when_the_level_comes_is_work),
		cmocka_unit_test(a_forked_child_has_no_loops),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
