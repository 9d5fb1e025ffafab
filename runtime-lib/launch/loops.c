#include "launch/loops.h"

#include "client/stream-level.h"
#include "gates/demand.h"
#include "gates/gate.h"
#include "launch/uncounted.h"

#include "weir/base.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define ENDS_NS 100000u /* a kernel whose blocks have left has mostly ended then */

struct loops loops_table[CLIENTS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all tables; not on the launch path */

/* @out: of the binding at which the stream acts. NULL: not governed. */
static struct stream *governed(CUstream handle, const struct level_binding **out)
{
	struct stream *stream = driver_ready() ? stream_find(handle, false) : NULL;
	const struct level_binding *binding =
		stream ? load_acquire(&stream->client->binding) : NULL;

	if (!binding)
		return NULL;
	*out = stream_binding(stream, binding);
	return stream;
}

static bool says_time(const struct weir_loop_state *state)
{
	return state->size >= sizeof(*state);
}

static void add(struct loops_total *total, const struct weir_loop_state *loop)
{
	total->evictions += load_relaxed(&loop->evictions);
	total->blocked += load_relaxed(&loop->blocked);
	total->blocked_time += load_relaxed(&loop->blocked_time);
	if (says_time(loop))
		total->ran += load_relaxed(&loop->ran);
}

EXPORT int weir_loops_begin(CUstream handle, const struct weir_loop_state *state)
{
	struct stream *stream = driver_ready() ? stream_find(handle, false) : NULL;
	int r = stream ? -ENOBUFS : -EAGAIN;

	if (!stream || state->size < WEIR_LOOP_STATE_FIRST)
		return r;
	struct loops *loops = loops_of(stream->client);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; r && i < LOOPS_MAX; i++) {
		if (loops->loop[i])
			continue;
		loops->loop[i] = state;
		r = 0;
	}
	pthread_mutex_unlock(&lock);
	if (!r && says_time(state))
		atomic_store(&stream->of_loop, true);
	return r;
}

EXPORT void weir_loops_end(CUstream handle, const struct weir_loop_state *state)
{
	struct stream *stream = driver_ready() ? stream_find(handle, false) : NULL;

	if (!stream)
		return;
	struct loops *loops = loops_of(stream->client);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < LOOPS_MAX; i++) {
		if (loops->loop[i] != state)
			continue;
		add(&loops->ended, state);
		loops->loop[i] = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* The hold word also while gates do not look at it: a kernel that is on the GPU when the agent
 * begins to hold the client leaves at once. */
static void say(struct weir_loop_words *out, const struct level_binding *binding)
{
	CUdeviceptr control = load_relaxed(&binding->control->gpu);

	*out = (struct weir_loop_words){
		.demand = gate_words(binding, GATE_ALL).demand,
		.demand_mask = ~binding->own,
		.hold = control ? control + offsetof(struct weir_control_page, hold) : 0,
	};
}

EXPORT int weir_loops_gate(CUstream handle, struct weir_loop_words *out)
{
	const struct level_binding *binding;
	struct stream *stream = governed(handle, &binding);

	if (!stream)
		return -EAGAIN;
	/* A change of level waits until the launch before has ended, and this one may never end. */
	stream_leave_marker(stream);
	uncounted_end(stream);
	gate_put(stream, binding, GATE_ALL);
	say(out, binding);
	return 0;
}

EXPORT int weir_loops_words(CUstream handle, struct weir_loop_words *out)
{
	const struct level_binding *binding;

	if (!governed(handle, &binding))
		return -EAGAIN;
	say(out, binding);
	return 0;
}

/* All blocks have told that they leave. The worker would see the end of the kernel up to a tick
 * later, and lower levels would wait for that. If the GPU has switched to another process before
 * that end, the kernel is work again. */
EXPORT void weir_loops_left(CUstream handle)
{
	struct stream *stream = driver_ready() ? stream_find(handle, false) : NULL;

	if (!stream)
		return;
	struct progress issued = stream_progress(stream);
	stream_completed(stream, &issued);
	uncounted_begin(stream, client_now() + ENDS_NS);
	demand_end(stream->client);
}

/* @ran: of all loops so far; never less than before. */
static uint64_t without_stops(struct loops *loops, uint64_t ran, bool stopped)
{
	loops->stood_still += stopped ? ran - loops->seen : 0;
	loops->seen = ran;
	return ran - loops->stood_still;
}

struct loops_total loops_tell(const struct client *client, struct weir_status_page *status,
			      bool stopped)
{
	struct loops *loops = loops_of(client);
	uint32_t n = 0, on_gpu = 0, waiting[WEIR_LOOP_WAITS] = {0};

	pthread_mutex_lock(&lock);
	struct loops_total total = loops->ended;
	for (size_t i = 0; i < LOOPS_MAX; i++) {
		const struct weir_loop_state *loop = loops->loop[i];
		if (!loop)
			continue;
		n++;
		on_gpu += load_relaxed(&loop->on_gpu) != 0;
		add(&total, loop);
		for (size_t k = 0; k < WEIR_LOOP_WAITS; k++)
			waiting[k] += load_relaxed(&loop->waiting[k]);
	}
	total.ran = without_stops(loops, total.ran, stopped);
	pthread_mutex_unlock(&lock);
	atomic_store(&status->loops, n);
	atomic_store(&status->loops_on_gpu, on_gpu);
	for (size_t k = 0; k < WEIR_LOOP_WAITS; k++)
		atomic_store(&status->loops_waiting[k], waiting[k]);
	atomic_store(&status->loops_blocked, total.blocked);
	atomic_store(&status->loops_blocked_time, total.blocked_time);
	return total;
}

/* A forked child has no loops, and another thread may have held the lock. */
void loops_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(loops_table, 0, sizeof(loops_table));
}
