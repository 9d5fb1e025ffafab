#include "client/worker.h"

#include "client/level-binding.h"
#include "client/subsystem.h"
#include "shim/thread.h"

#include "weir/log.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

/* How long until the next look, in ns. */
#define TICK_LINGERING (50 * NS_PER_US)  /* demand is shown, and no launch is outstanding */
#define TICK_STALLED   (200 * NS_PER_US) /* launches are outstanding and no new one came */
#define TICK_CONTENDED (500 * NS_PER_US) /* work is outstanding, also of same-level clients */
#define TICK_BUSY      NS_PER_MS         /* launches keep coming */
#define TICK_IDLE      (20 * NS_PER_MS)  /* nothing outstanding */
#define TICK_ASLEEP    (50 * NS_PER_MS)  /* and so for a second; worker_wake() is a system call */
#define ASLEEP_AFTER   NS_PER_S
#define STALE          (10 * NS_PER_MS) /* a busy client's driver is asked at least this often */

static struct {
	bool started;
	_Atomic int stopping;
	_Atomic uint32_t epoch; /* odd: the worker may be in the driver */
	_Atomic int paused;
	_Atomic uint32_t wakes;  /* futex, while it sleeps deeply */
	_Atomic uint32_t alarms; /* futex, else */
	_Atomic int asleep;
	_Atomic pid_t thread;
	_Atomic(struct client *) at; /* the worker looks after it; NULL: none */
	struct {
		uint64_t last_tick, last_drive; /* ns */
		_Atomic int hurried;
	} clients[CLIENTS_MAX];
} worker;

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void worker_wake(void)
{
	atomic_fetch_add(&worker.wakes, 1);
	if (atomic_load(&worker.asleep))
		futex_wake(&worker.wakes);
}

void worker_alarm(void)
{
	atomic_fetch_add(&worker.alarms, 1);
	futex_wake(&worker.alarms);
	worker_wake();
}

void worker_hurry(const struct client *client)
{
	atomic_store(&worker.clients[client->index].hurried, 1);
	worker_alarm();
}

uint64_t worker_await(const _Atomic uint64_t *planned, struct tick *tick)
{
	uint64_t at = atomic_load(planned), now = at ? client_now() : 0;

	if (at > now + WORKER_SPIN) {
		uint64_t ns = at - now - WORKER_SPIN;
		tick->alarm = tick->alarm ? smaller(tick->alarm, ns) : ns;
		return 0;
	}
	while (at > now && atomic_load(planned) == at) {
		sched_yield();
		now = client_now();
	}
	return atomic_load(planned) == at ? at : 0;
}

uint32_t worker_visit(void)
{
	return atomic_load(&worker.epoch);
}

bool worker_left(uint32_t visit)
{
	return !(visit & 1) || atomic_load(&worker.epoch) != visit;
}

static bool is_worker(void)
{
	return atomic_load(&worker.thread) == gettid();
}

static bool has_left(const void *visit)
{
	return worker_left(*(const uint32_t *)visit);
}

static bool looks_elsewhere(const void *client)
{
	return atomic_load(&worker.at) != client;
}

static bool await(bool (*condition)(const void *), const void *of)
{
	uint64_t until = client_now() + GRACE_WITHIN;

	if (is_worker())
		return true;
	while (!condition(of) && client_now() < until)
		sched_yield();
	return condition(of);
}

bool worker_grace(void)
{
	uint32_t visit = worker_visit();

	if (worker_left(visit) || await(has_left, &visit))
		return true;
	log_limited(LOG_WARNING, 60,
		    "the driver has not let a thread of libweir's go for %u s: what this thread "
		    "uses is not freed",
		    (unsigned)(GRACE_WITHIN / NS_PER_S));
	return false;
}

bool worker_leave(const struct client *client)
{
	if (looks_elsewhere(client) || await(looks_elsewhere, client))
		return true;
	log_limited(LOG_WARNING, 60,
		    "a context ends, and a thread of libweir's has not finished with it for %u s: "
		    "what is known of it is not freed",
		    (unsigned)(GRACE_WITHIN / NS_PER_S));
	return false;
}

void worker_pause(void)
{
	atomic_fetch_add(&worker.paused, 1);
	worker_grace();
}

void worker_resume(void)
{
	atomic_fetch_sub(&worker.paused, 1);
}

bool worker_stopped(void)
{
	return atomic_load(&worker.stopping) != 0;
}

void worker_fork(void)
{
	worker.started = false;
	atomic_store(&worker.at, NULL);
	atomic_store(&worker.epoch, 0);
	atomic_store(&worker.paused, 0);
}

/* Enters the driver for a client. False: not now. Either we see here what was published before
 * worker_grace(), or worker_grace() waits for us. */
static bool enter(struct client *client)
{
	atomic_fetch_add(&worker.epoch, 1);
	if (!atomic_load(&worker.paused) && !atomic_load(&worker.stopping) &&
	    atomic_load(&client->state) == CLIENT_LIVE &&
	    real(cuCtxSetCurrent)(client->context) == CUDA_SUCCESS)
		return true;
	atomic_fetch_add(&worker.epoch, 1);
	return false;
}

static void leave(void)
{
	real(cuCtxSetCurrent)(NULL);
	atomic_fetch_add(&worker.epoch, 1);
}

/* Each driver call of ours delays the program's own for a moment. So samples are read at once only
 * where somebody may wait for this client. */
static bool wants_driver(const struct tick *tick)
{
	bool stale = tick->unattended > STALE;
	bool soon = stale || tick->contended || tick->flying || tick->waited || tick->slo;

	return (tick->samples && soon) || tick->rebinding || tick->forms || tick->due ||
	       tick->uncounted ||
	       (tick->totals.outstanding &&
		(!tick->moved || stale || tick->contended || tick->hurried));
}

static uint64_t next_look(const struct tick *tick)
{
	unsigned level = tick->binding->level;
	uint64_t outstanding = tick->totals.outstanding;

	if (tick->awaited || (tick->samples && binding_has_slo(tick->binding)))
		return TICK_STALLED;
	if (tick->contended && outstanding)
		return tick->moved || !level ? TICK_CONTENDED : TICK_STALLED;
	if (!outstanding && tick->demand_now && (level || tick->contended))
		return TICK_LINGERING;
	if (tick->moved || tick->flying || tick->forms || tick->changing)
		return TICK_BUSY;
	if (outstanding || tick->demanding)
		return level ? TICK_STALLED : TICK_BUSY;
	return tick->lately ? TICK_CONTENDED : TICK_IDLE;
}

/* Looks after one client; returns how long until the next look. */
static uint64_t look_after(struct client *client, uint64_t now)
{
	uint64_t *last_tick = &worker.clients[client->index].last_tick;
	uint64_t *last_drive = &worker.clients[client->index].last_drive;
	struct tick tick = {.now = now,
			    .passed = now - *last_tick,
			    .unattended = now - *last_drive,
			    .hurried = atomic_exchange(&worker.clients[client->index].hurried, 0),
			    .binding = atomic_load(&client->binding)};

	if (!tick.binding && !binding_waits(client))
		return TICK_IDLE;
	each_subsystem(look, client, &tick);
	if (wants_driver(&tick) && enter(client)) {
		each_subsystem(drive, client, &tick);
		leave();
		*last_drive = now;
		tick.driven = true;
	}
	tick.binding = atomic_load(&client->binding);
	if (!tick.binding)
		return TICK_BUSY;
	each_subsystem(work, client, &tick);
	*last_tick = now;
	return tick.alarm ? smaller(tick.alarm, next_look(&tick)) : next_look(&tick);
}

/* Either we see here that the client ends, or worker_leave() waits for us. So no other client
 * takes the slot meanwhile. It may have given up: then nothing that we have shown for the client
 * may stand. */
static uint64_t look_at(struct client *client, uint64_t now)
{
	uint64_t next = TICK_IDLE;

	atomic_store(&worker.at, client);
	if (atomic_load(&client->state) == CLIENT_LIVE) {
		next = look_after(client, now);
		if (atomic_load(&client->state) == CLIENT_ENDING)
			each_subsystem_back(stop, client);
	}
	atomic_store(&worker.at, NULL);
	return next;
}

/* Counts of before the looks, so that nothing since then is lost. */
struct called {
	uint32_t wakes, alarms;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

static void sleep_for(uint64_t ns, bool deep, const struct called *before)
{
	if (!deep) {
		futex_wait(&worker.alarms, before->alarms, ns);
		return;
	}
	atomic_store(&worker.asleep, 1);
	futex_wait(&worker.wakes, before->wakes, ns);
	atomic_store(&worker.asleep, 0);
}

static void *run(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	uint64_t active = client_now();

	(void)unused;
	thread_name("weir-worker");
	atomic_store(&worker.thread, gettid());
	/* A capture in another thread must not fail because of our queries. */
	real(cuThreadExchangeStreamCaptureMode)(&mode);
	while (!atomic_load(&worker.stopping)) {
		struct called before = {atomic_load(&worker.wakes), atomic_load(&worker.alarms)};
		uint64_t now = client_now(), next = TICK_IDLE;
		client_for_each (client)
			next = smaller(next, look_at(client, now));
		each_subsystem(round, now);
		if (next < TICK_IDLE)
			active = now;
		bool asleep = next == TICK_IDLE && now - active > ASLEEP_AFTER;
		sleep_for(asleep ? TICK_ASLEEP : next, next == TICK_IDLE, &before);
	}
	return NULL;
}

/* The driver takes itself down at exit: none of our calls may meet that. But the exit must not wait
 * for ever for a call that does not return: it may wait for this thread, which a signal took out of
 * the driver, or for a kernel that never ends. */
static void stop(void)
{
	atomic_store(&worker.stopping, 1);
	worker_grace();
	client_for_each (client) {
		if (atomic_load(&client->state) == CLIENT_LIVE)
			each_subsystem_back(stop, client);
	}
}

int worker_start(void)
{
	int r = worker.started ? 0 : thread_start(run, "weir-worker");

	if (r == 0 && !worker.started)
		atexit(stop);
	worker.started |= r == 0;
	return r;
}
