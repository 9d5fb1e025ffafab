/* Records of streams, whose threads and contexts come and go, on the null driver. */
#include "client/stream.h"

#include "inside.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL ((CUfunction)(uintptr_t)0x9000)

/* A thread that launches into its own default stream, and ends when it is told to. */
struct guest {
	pthread_t thread;
	CUcontext context;
	unsigned launches;
	struct stream *stream; /* its record */
	_Atomic int launched, told;
};

static void *launch_and_wait(void *data)
{
	struct guest *guest = data;

	cuCtxSetCurrent(guest->context);
	for (unsigned i = 0; i < guest->launches; i++)
		cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, NULL, NULL);
	guest->stream = stream_find(CU_STREAM_PER_THREAD, false);
	atomic_store(&guest->launched, 1);
	while (!atomic_load(&guest->told))
		usleep(100);
	return NULL;
}

static void guest_start(struct guest *guest, unsigned n, unsigned launches)
{
	*guest = (struct guest){.context = CONTEXT(n), .launches = launches};
	assert_int_equal(pthread_create(&guest->thread, NULL, launch_and_wait, guest), 0);
	assert_true(eventually(atomic_load(&guest->launched)));
}

static void guest_end(struct guest *guest)
{
	atomic_store(&guest->told, 1);
	pthread_join(guest->thread, NULL);
}

/* Queries of this event do not return while it is set. */
static _Atomic(CUevent) stuck;
static _Atomic int waiting;

static CUresult query(CUevent event)
{
	if (event == atomic_load(&stuck)) {
		atomic_store(&waiting, 1);
		while (atomic_load(&stuck))
			usleep(100);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_READY;
}

/* The worker asks about a thread's stream, the thread ends, and another begins. */
static void what_was_asked_of_one_is_not_anothers(void **state)
{
	void *before = driver_hooks[HOOK_cuEventQuery].real;
	unsigned n = context_welcomed(2);
	struct guest first, second;

	(void)state;
	cuStreamSynchronize(STREAM(n, 1));
	driver_hooks[HOOK_cuEventQuery].real = (void *)query;
	driver->streams_busy = 1;
	guest_start(&first, n, 10);
	atomic_store(&stuck, first.stream->marker);
	assert_true(eventually(atomic_load(&waiting)));
	guest_end(&first);
	guest_start(&second, n, 1);
	atomic_store(&stuck, NULL);
	usleep(50000);
	uint64_t begun = second.stream->begun, completed = second.stream->completed;
	driver_hooks[HOOK_cuEventQuery].real = before;
	driver->streams_busy = 0;
	guest_end(&second);
	context_gone(n);
	assert_int_equal(begun, 1);
	assert_int_equal(completed, 0);
}

/* The driver does not let the worker go, as if what it does there waited for this thread. */
static void a_stream_ends_though_the_worker_does_not_come_back(void **state)
{
	void *before = driver_hooks[HOOK_cuEventQuery].real;
	unsigned n = context_welcomed(2);
	struct guest guest;

	(void)state;
	cuStreamSynchronize(STREAM(n, 1));
	cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 2), NULL, NULL);
	cuStreamSynchronize(STREAM(n, 2));
	struct stream *stream = stream_find(STREAM(n, 2), false);
	driver_hooks[HOOK_cuEventQuery].real = (void *)query;
	driver->streams_busy = 1;
	guest_start(&guest, n, 10);
	atomic_store(&waiting, 0);
	atomic_store(&stuck, guest.stream->marker);
	assert_true(eventually(atomic_load(&waiting)));
	assert_int_equal(cuStreamDestroy_v2(STREAM(n, 2)), CUDA_SUCCESS);
	assert_non_null(atomic_load(&stuck));
	atomic_store(&stuck, NULL);
	/* The worker may have meant the former stream of this handle. */
	cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 2), NULL, NULL);
	struct stream *next = stream_find(STREAM(n, 2), false);
	uint64_t begun = next->begun;
	driver_hooks[HOOK_cuEventQuery].real = before;
	driver->streams_busy = 0;
	guest_end(&guest);
	context_gone(n);
	assert_ptr_not_equal(next, stream);
	assert_int_equal(begun, 1);
}

static struct guest early, late;
static unsigned of_context;

/* While a thread waits for the context another one ends, and a third begins. */
static CUresult synchronise(void)
{
	guest_end(&early);
	guest_start(&late, of_context, 1);
	return CUDA_SUCCESS;
}

static void what_was_waited_for_is_not_anothers(void **state)
{
	void *before = driver_hooks[HOOK_cuCtxSynchronize].real;

	(void)state;
	of_context = context_welcomed(2);
	cuStreamSynchronize(STREAM(of_context, 1));
	driver->streams_busy = driver->events_busy = 1;
	guest_start(&early, of_context, 10);
	driver_hooks[HOOK_cuCtxSynchronize].real = (void *)synchronise;
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	driver_hooks[HOOK_cuCtxSynchronize].real = before;
	uint64_t begun = late.stream->begun, completed = late.stream->completed;
	driver->streams_busy = driver->events_busy = 0;
	guest_end(&late);
	context_gone(of_context);
	assert_int_equal(begun, 1);
	assert_int_equal(completed, 0);
}

/* A thread's marker is of its context, whose end it did not live to see. */
static void events_go_with_their_context(void **state)
{
	unsigned n = context_welcomed(2);

	(void)state;
	guest_start(&early, n, 1);
	CUevent marker = early.stream->marker;
	assert_non_null(marker);
	guest_end(&early);
	context_gone(n);

	/* Another one at the same place. */
	fake_agent_welcome_next(&agent, 2, 1);
	cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	fake_agent_join();
	guest_start(&late, n, 1);
	CUevent next = late.stream->marker;
	guest_end(&late);
	context_gone(n);
	assert_ptr_not_equal(next, marker);
}

/* Two contexts whose threads' streams share a bucket. */
static void events_are_of_one_context(void **state)
{
	const unsigned apart = 0x2000 / 0x100;
	unsigned n = context_welcomed(2);

	(void)state;
	guest_start(&early, n, 1);
	CUevent marker = early.stream->marker;
	guest_end(&early);
	fake_agent_welcome_next(&agent, 2, 2);
	guest_start(&late, n + apart, 1);
	fake_agent_join();
	CUevent next = late.stream->marker;
	guest_end(&late);
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n + apart)), CUDA_SUCCESS);
	context_gone(n);
	assert_ptr_not_equal(next, marker);
}

/* What was measured when a context went is not to be read in the next one, whose events are others.
 */
static void samples_go_with_their_context(void **state)
{
	driver->streams_busy = driver->events_busy = 1;
	unsigned n = context_welcomed(2);
	const struct client *former = client;

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		cuLaunchKernel(KERNEL, i + 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	assert_int_not_equal(sampler_of(client)->armed, 0);
	context_gone(n);
	context_welcomed(2);
	uint32_t both = sampler_of(client)->armed & sampler_of(client)->free;
	driver->streams_busy = driver->events_busy = 0;
	assert_ptr_equal(client, former);
	assert_int_equal(both, 0);
	context_gone(n + 1);
}

static void launches_stay_counted(void **state)
{
	unsigned n = context_welcomed(2);

	(void)state;
	guest_start(&early, n, 10);
	guest_end(&early);
	assert_true(eventually(agent.status->launches == 11));
	context_gone(n);
}

#define NUMBERS 65536 /* that threads have, less one */

static void *use_own_stream(void *context)
{
	cuCtxSetCurrent(context);
	stream_find(CU_STREAM_PER_THREAD, false);
	return NULL;
}

/* However many have come and gone meanwhile. */
static void threads_that_live_have_their_own(void **state)
{
	unsigned n = context_welcomed(2);
	pthread_t thread;

	(void)state;
	guest_start(&early, n, 1);
	for (unsigned i = 0; i < NUMBERS - 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, use_own_stream, CONTEXT(n)), 0);
		pthread_join(thread, NULL);
	}
	guest_start(&late, n, 1);
	struct stream *first = early.stream, *last = late.stream;
	guest_end(&late);
	guest_end(&early);
	context_gone(n);
	assert_non_null(last);
	assert_ptr_not_equal(first, last);
}

static void *end_context(void *context)
{
	cuCtxDestroy_v2(context);
	return NULL;
}

/* While the worker still looks at the client that ends, a new context takes another slot. */
static void slot_is_free_when_its_client_is_forgotten(void **state)
{
	unsigned n = context_welcomed(0), other = n + 50;
	const struct client *ending = client;
	pthread_t ender;

	(void)state;
	driver->streams_busy = 1;
	driver->streams_stuck = 1;
	assert_true(eventually(driver->queries_stuck > 0));
	pthread_create(&ender, NULL, end_context, CONTEXT(n));
	assert_true(eventually(client_find(CONTEXT(n)) == NULL));
	cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(other, 1), NULL, NULL);
	assert_non_null(client_find(CONTEXT(other)));
	assert_ptr_not_equal(client_find(CONTEXT(other)), ending);
	driver->streams_stuck = 0;
	driver->streams_busy = 0;
	pthread_join(ender, NULL);
	context_gone(other);
}

#define CONTEXTS 40

static void every_context_is_governed(void **state)
{
	unsigned first = context_welcomed(1), last = first;
	int connections[CONTEXTS] = {agent.client};
	const struct client *clients_of[CONTEXTS] = {client};

	(void)state;
	for (unsigned i = 1; i < CONTEXTS; i++) {
		last = context_welcomed(1);
		connections[i] = agent.client;
		clients_of[i] = client;
		assert_ptr_not_equal(client, clients_of[i - 1]);
		assert_true(eventually(atomic_load(&client->binding) != NULL));
	}
	for (unsigned n = first; n <= last; n++) {
		assert_ptr_equal(client_find(CONTEXT(n)), clients_of[n - first]);
		agent.client = connections[n - first];
		context_gone(n);
		assert_null(client_find(CONTEXT(n)));
	}
}

#define STREAMS    3000
#define OF_MANY(i) ((CUstream)(uintptr_t)(0x70000000 + 8 * (i)))

static CUresult context_of_many(CUstream stream, CUcontext *context)
{
	(void)stream;
	*context = CONTEXT(of_context);
	return CUDA_SUCCESS;
}

static void every_stream_is_governed(void **state)
{
	static const struct stream *records[STREAMS];
	void *before = driver_hooks[HOOK_cuStreamGetCtx].real;

	(void)state;
	of_context = context_welcomed(1);
	driver_hooks[HOOK_cuStreamGetCtx].real = (void *)context_of_many;
	for (unsigned i = 0; i < STREAMS; i++) {
		cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, OF_MANY(i), NULL, NULL);
		records[i] = stream_known(OF_MANY(i), false);
		assert_non_null(records[i]);
		assert_int_equal(records[i]->begun, 1);
	}
	assert_true(eventually(agent.status->launches == STREAMS + 1));
	assert_true(eventually(agent.status->outstanding == 0));
	driver_hooks[HOOK_cuStreamGetCtx].real = before;
	context_gone(of_context);
	for (unsigned i = 0; i < STREAMS; i++)
		assert_null(stream_known(OF_MANY(i), false));
}

/* A context that no agent has welcomed, so the worker leaves it alone. */
static void time_before_a_stream_was_not_run_by_it(void **state)
{
	const unsigned n = 200;
	bool too_late = false;

	(void)state;
	cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	struct client *alone = client_find(CONTEXT(n));
	assert_non_null(alone);
	assert_null(alone->binding);
	for (unsigned life = 0; life < 2; life++) { /* a new record, and the same one again */
		struct stream *stream = stream_find(STREAM(n, 2), false);
		assert_non_null(stream);
		atomic_store(&stream->begun, 1);
		atomic_store(&stream->issued, 1);
		atomic_store(&stream->predicted, 10 * NS_PER_MS);
		assert_int_equal(streams_remaining(alone, 3600 * NS_PER_S, &too_late),
				 10 * NS_PER_MS);
		assert_int_equal(streams_remaining(alone, 3 * NS_PER_MS, &too_late), 7 * NS_PER_MS);
		assert_false(too_late);
		cuStreamDestroy_v2(STREAM(n, 2));
		assert_null(stream_known(STREAM(n, 2), false));
	}
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_asked_of_one_is_not_anothers),
		cmocka_unit_test(a_stream_ends_though_the_worker_does_not_come_back),
		cmocka_unit_test(what_was_waited_for_is_not_anothers),
		cmocka_unit_test(events_go_with_their_context),
		cmocka_unit_test(events_are_of_one_context),
		cmocka_unit_test(samples_go_with_their_context),
		cmocka_unit_test(launches_stay_counted),
		cmocka_unit_test(threads_that_live_have_their_own),
		cmocka_unit_test(every_context_is_governed),
		cmocka_unit_test(every_stream_is_governed),
		cmocka_unit_test(slot_is_free_when_its_client_is_forgotten),
		cmocka_unit_test(time_before_a_stream_was_not_run_by_it),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
