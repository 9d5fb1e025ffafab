/* The host side of a loop: weir/loop.h has the contract, README.md the model. */
#include "loop/inside.h"

#include "loop/governed.h"
#include "loop/launches.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_US 1000u
#define NS_PER_S  1000000000u
/* Between two looks at a kernel that asks for nothing: a part of the time that it already has, so
 * that its end is late by less than 1 %. */
#define NAP_PART     128u
#define NAP_LEAST_NS (20u * NS_PER_US)
#define NAP_MOST_NS  (1000u * NS_PER_US)
/* While the kernel waits behind its gate: it asks for much as soon as that opens, and then has a
 * turn of some milliseconds, however long it waited. */
#define NAP_PART_GATE 1024u
#define CHECK_NS      (20u * 1000u * NS_PER_US) /* between two questions whether the kernel failed */
#define FILES_MAX     1048576u
#define STAGING_MAX   1024u
#define BATCHES       16 /* of the kernel at a time */
#define READERS_USUAL 12u
#define READERS_SPARE 3u
#define READERS_MAX   64u
#define READERS_SPIN  3u /* the part of spin_us for which readers watch for work */
/* While readers copy: a sleep ends 50 to 200 us late, when others could have copied 10 MiB. One
 * that takes longer reads from a disk. */
#define READING_NS (1000u * NS_PER_US)

static _Thread_local char new_error[200];

uint64_t loop_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void loop_submit(struct weir_loop *loop, struct io *io)
{
	io->owner = loop;
	loop->operations++;
	loop->engine->type->submit(loop->engine, io);
}

/* What is not in the page cache, the engine reads: there many reads wait at a time. It also knows
 * what is wrong with the others. */
static void finish_cached(struct weir_loop *loop, struct io *io)
{
	loop->reading--;
	io->kind = IO_READ;
	if (io->result < 0)
		loop_submit(loop, io);
	else
		io->finish(io);
}

void loop_submit_read(struct weir_loop *loop, struct io *io)
{
	io->owner = loop;
	io->kind = IO_READ_CACHED;
	loop->reading++;
	workers_submit(loop->readers, io);
}

/* Goes on with operations that have ended. True: there were some. */
static bool finish_operations(struct weir_loop *loop)
{
	bool some = false;
	struct io *io;

	while ((io = loop->engine->type->reap(loop->engine))) {
		loop->operations--;
		io->finish(io);
		some = true;
	}
	while (loop->reading && (io = workers_reap(loop->readers))) {
		finish_cached(loop, io);
		some = true;
	}
	return some;
}

static void sleep_for(struct weir_loop *loop, uint64_t ns)
{
	if (!loop->reading || !workers_watch(loop->readers))
		loop->engine->type->wait(loop->engine, ns);
}

void loop_answer(struct weir_loop *loop, struct slot *slot, int64_t result)
{
	if (slot->handle)
		handles_unuse(&loop->handles, slot->handle);
	slot->handle = NULL;
	atomic_fetch_sub_explicit(&loop->state.waiting[slot->waits], 1, memory_order_relaxed);
	rings_answer(&loop->rings, slot_number(loop, slot), result);
}

static uint32_t processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (uint32_t)CPU_COUNT(&set);
}

static uint32_t usual_readers(void)
{
	uint32_t readers = processors() * 3 / 4;

	return readers < 1 ? 1 : readers < READERS_USUAL ? readers : READERS_USUAL;
}

/* One processor is left to the loop's thread. */
static uint32_t spare_readers(void)
{
	uint32_t all = processors() - 1, usual = usual_readers();

	return all < usual ? 0 : all - usual < READERS_SPARE ? all - usual : READERS_SPARE;
}

/* Fills in defaults. */
static int take_options(struct weir_loop *loop, const struct weir_loop_options *given)
{
	struct weir_loop_options *options = &loop->options;
	struct {
		uint32_t *value, usual, most;
	} limits[] = {
		{&options->threads, 128, 1024},
		{&options->callbacks, 8, WEIR_LOOP_CALLBACKS_MAX},
		{&options->files, 4096, FILES_MAX},
		{&options->staging, 16, STAGING_MAX},
		{&options->readers, usual_readers(), READERS_MAX},
		{&options->linger_us, 100, NS_PER_S / NS_PER_US},
		{&options->spin_us, 150, NS_PER_S / NS_PER_US},
		{&options->poll_ns, 1000, NS_PER_S},
	};

	*options = *given;
	loop->spare_readers = options->readers ? 0 : spare_readers();
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (!*limits[i].value)
			*limits[i].value = limits[i].usual;
		if (*limits[i].value > limits[i].most)
			return -EINVAL;
	}
	return 0;
}

/* The kernel enlarges a process's table of descriptors when it is full. If the process has several
 * threads, whoever opens something then waits for 10 ms and more. So the table is enlarged before
 * the loop runs. @fd: any one. */
static void make_room_for_descriptors(int fd, uint32_t files)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	uint64_t wanted = (uint64_t)fd + files;
	int last = (int)(wanted < limit.rlim_cur ? wanted : limit.rlim_cur) - 1;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, last);
	if (copy >= 0)
		close(copy);
}

static int start_engine(struct weir_loop *loop)
{
	uint32_t most =
		loop->rings.slots + loop->options.files + staging_pieces(loop->options.staging);

	int r = -ENOSYS;

	if (!loop->options.no_uring && !getenv("WEIR_LOOP_NO_URING"))
		r = io_uring_engine.new(&loop->engine, most);
	if (r)
		r = io_pool_engine.new(&loop->engine, most);
	if (r)
		return r;
	make_room_for_descriptors(loop->engine->event, loop->options.files);
	r = workers_new(&loop->readers, loop->options.readers, loop->spare_readers,
			loop->options.spin_us / READERS_SPIN, loop->engine->event);
	if (!r)
		workers_start(loop->readers);
	return r;
}

static int set_up(struct weir_loop *loop, CUfunction kernel)
{
	const struct weir_loop_options *options = &loop->options;
	const uint32_t most = WEIR_LOOP_SLOTS_MAX / options->callbacks;
	uint32_t slots;
	int r = gpu_init(&loop->gpu, kernel, options->blocks, options->threads, options->shared);

	if (r)
		return r;
	if (!options->blocks && loop->gpu.blocks > most)
		loop->gpu.blocks = most;
	if (loop->gpu.blocks > most)
		return -EINVAL;
	if ((r = gpu_make_state(&loop->gpu)))
		return r;
	slots = loop->gpu.blocks * options->callbacks;
	loop->shared = gpu_host_alloc(&loop->gpu, rings_size(slots, rings_places(slots)));
	if (!loop->shared)
		return -EIO;
	loop->slots = calloc(slots, sizeof(loop->slots[0]));
	loop->timers = calloc(slots, sizeof(loop->timers[0]));
	if (!loop->slots || !loop->timers)
		return -ENOMEM;
	if ((r = rings_init(&loop->rings, loop->shared, loop->gpu.blocks, options->callbacks)) ||
	    (r = handles_init(&loop->handles, options->files, &loop->cufile)) ||
	    (r = transfers_init(loop, options->staging)))
		return r;
	return start_engine(loop);
}

int weir_loop_new(struct weir_loop **out, struct CUfunc_st *kernel,
		  const struct weir_loop_options *options)
{
	struct weir_loop *loop = calloc(1, sizeof(*loop));
	int r = loop ? take_options(loop, options) : -ENOMEM;

	if (!r)
		r = set_up(loop, kernel);
	if (!r)
		loop->stay = stay_of(loop->options.linger_us * NS_PER_US);
	if (!r) {
		governed_find(loop);
		*out = loop;
		return 0;
	}
	snprintf(new_error, sizeof(new_error), "%s",
		 loop && loop->gpu.error[0] ? loop->gpu.error : strerror(-r));
	weir_loop_free(loop);
	return r;
}

enum next { NEXT_STAY, NEXT_LAUNCH, NEXT_END };

/* The kernel has left. */
static enum next judge(struct weir_loop *loop, const struct weir_loop_report *report)
{
	bool ended = report->ended >= loop->gpu.blocks || (report->reason & WEIR_LOOP_EXITED);

	launches_left(loop, report);
	/* Asked by us: the words have changed, mostly because they begin to say that it must leave.
	 * One that has ended has not left for others. */
	if (report->reason & (WEIR_LOOP_EVICTED | WEIR_LOOP_ASKED) && !loop->stops && !ended)
		loop_count(&loop->state.evictions, 1);
	bool blocked = report->reason == WEIR_LOOP_BLOCKED;
	if (!blocked && !ended && !loop->stops)
		return NEXT_LAUNCH;
	governed_left(loop);
	if (ended || loop->stops)
		return NEXT_END;
	atomic_store_explicit(&loop->state.on_gpu, 0, memory_order_relaxed);
	loop_count(&loop->state.blocked, 1);
	return NEXT_STAY;
}

/* Takes what the kernel asks for, and what has ended. True: there was something. What this submits
 * behind the kick is begun by the next look, together with what the kernel asks for then, or before
 * the thread waits. */
static bool look(struct weir_loop *loop, uint64_t now)
{
	bool some = false;

	for (int i = 0; i < BATCHES && rings_take(&loop->rings, requests_start, loop); i++)
		some = true;
	loop->engine->type->kick(loop->engine);
	some |= finish_operations(loop);
	some |= transfers_look(loop);
	workers_hurry(loop->readers, !loop->in.first);
	some |= timers_look(loop, now);
	network_retry(loop, now);
	return some;
}

/* How long the thread may sleep. */
static uint64_t sleep_ns(const struct weir_loop *loop, uint64_t now, uint64_t nap)
{
	uint64_t next = timers_next(loop);

	if (loop->retry > now && next > loop->retry)
		next = loop->retry;
	if ((loop->on_gpu || transfers_copying(loop)) && next > now + nap)
		next = now + nap;
	if (next == UINT64_MAX)
		return next;
	return next > now ? next - now : 0;
}

/* The kernel is away, and answers have come that it has not taken. */
static bool is_due(const struct weir_loop *loop)
{
	return loop->rings.given != launches_last(loop)->answers;
}

struct cycle {
	uint64_t busy_at, checked_at; /* when there was something; whether the kernel failed */
	bool asked;                   /* the kernel to leave */
};

/* A kernel that fails never says that it has left. */
static int check_kernel(struct weir_loop *loop, struct cycle *cycle, uint64_t now)
{
	if (now - cycle->checked_at < CHECK_NS)
		return 0;
	cycle->checked_at = now;
	int r = gpu_ended(&loop->gpu);
	if (r == -EAGAIN || (!r && launches_report(loop)))
		return 0;
	if (!r)
		snprintf(loop->gpu.error, sizeof(loop->gpu.error),
			 "the kernel ended without weir::loop::run()");
	return -EIO;
}

static void ask_to_leave(struct weir_loop *loop, struct cycle *cycle, uint64_t now)
{
	if (loop->on_gpu && !cycle->asked && (loop->stops || governed_changed(loop, now))) {
		rings_close(&loop->rings, WEIR_LOOP_ASKED);
		cycle->asked = true;
	}
}

static void rest(struct weir_loop *loop, const struct cycle *cycle, uint64_t now)
{
	bool gated = loop->on_gpu && !loop->began_at;
	uint64_t idle = now - cycle->busy_at, nap = idle / (gated ? NAP_PART_GATE : NAP_PART);
	uint64_t spin = loop->options.spin_us * NS_PER_US;

	if (idle < (loop->reading && spin < READING_NS ? READING_NS : spin))
		return;
	nap = nap < NAP_LEAST_NS ? NAP_LEAST_NS : nap > NAP_MOST_NS ? NAP_MOST_NS : nap;
	sleep_for(loop, sleep_ns(loop, now, nap));
}

/* One look at everything. NEXT_END, or a negative errno: the loop is over. */
static int step(struct weir_loop *loop, struct cycle *cycle, void **params)
{
	uint64_t now = loop_now();
	bool some = look(loop, now);
	const struct weir_loop_report *report = loop->on_gpu ? launches_report(loop) : NULL;
	enum next next = report ? judge(loop, report) : NEXT_STAY;

	if (!loop->on_gpu && next != NEXT_END && loop->stops)
		next = NEXT_END;
	if (!loop->on_gpu && next == NEXT_STAY && is_due(loop)) {
		launches_back(loop, now);
		next = NEXT_LAUNCH;
	}
	if (next == NEXT_LAUNCH) {
		*cycle = (struct cycle){.busy_at = now, .checked_at = now};
		loop->engine->type->kick(loop->engine); /* the launch may wait at a gate */
		return launches_begin(loop, params);
	}
	if (next == NEXT_END)
		return NEXT_END;
	if (loop->on_gpu && launches_watch(loop, now))
		cycle->busy_at = now;
	ask_to_leave(loop, cycle, now);
	if (some || report) {
		cycle->busy_at = now;
		return NEXT_STAY;
	}
	rest(loop, cycle, now);
	return loop->on_gpu ? check_kernel(loop, cycle, now) : NEXT_STAY;
}

int weir_loop_run(struct weir_loop *loop, void **params, int *code)
{
	struct cycle cycle = {.busy_at = loop_now(), .checked_at = loop_now()};
	int r;

	if (loop->has_run)
		return -EINVAL;
	loop->has_run = true;
	governed_begin(loop);
	r = launches_begin(loop, params);
	while (!r)
		r = step(loop, &cycle, params);
	governed_end(loop);
	if (r < 0) {
		snprintf(loop->error, sizeof(loop->error), "%s", loop->gpu.error);
		return r;
	}
	if (code)
		*code = launches_last(loop)->code;
	return loop->stops ? -ECANCELED : 0;
}

void weir_loop_stop(struct weir_loop *loop)
{
	atomic_store(&loop->stops, true);
	io_wake(loop->engine);
}

/* An engine without room drops what it is asked here: ask again while operations are left. */
static void cancel_slots(struct weir_loop *loop)
{
	for (uint32_t i = 0; i < loop->rings.slots; i++) {
		if (!loop->rings.busy[i])
			continue;
		loop->slots[i].end = 0; /* no more pieces */
		loop->engine->type->cancel(loop->engine, &loop->slots[i].io);
	}
}

/* The engine may still write into memory of ours: it ends all operations first. */
static void drain(struct weir_loop *loop)
{
	for (uint32_t i = 0; loop->handles.table && i < loop->handles.size; i++) {
		struct handle *handle = &loop->handles.table[i];
		if (handle->kind == HANDLE_LISTENER || handle->kind == HANDLE_CONNECTION) {
			handle->closing = true;
			shutdown(handle->fd, SHUT_RDWR);
			if (handle->kind == HANDLE_LISTENER)
				network_end_accepts(loop, handle);
		}
	}
	while (loop->operations || loop->reading) {
		cancel_slots(loop);
		loop->engine->type->kick(loop->engine);
		finish_operations(loop);
		if (loop->operations || loop->reading)
			sleep_for(loop, NAP_MOST_NS);
	}
}

void weir_loop_free(struct weir_loop *loop)
{
	if (!loop)
		return;
	if (loop->engine) {
		drain(loop);
		workers_free(loop->readers);
		loop->engine->type->free(loop->engine);
	}
	/* Waits for copies, too. */
	gpu_deinit(&loop->gpu);
	transfers_deinit(loop);
	handles_deinit(&loop->handles);
	cufile_deinit(&loop->cufile);
	rings_deinit(&loop->rings);
	gpu_host_free(loop->shared);
	free(loop->slots);
	free(loop->timers);
	free(loop);
}

uint16_t weir_loop_port(const struct weir_loop *loop, uint32_t n)
{
	for (uint32_t i = 0; i < loop->handles.size; i++) {
		uint16_t port = loop->handles.table[i].port;
		if (port && !n--)
			return port;
	}
	return 0;
}

const char *weir_loop_error(const struct weir_loop *loop)
{
	return loop ? loop->error : new_error;
}

void weir_loop_stats(const struct weir_loop *loop, struct weir_loop_stats *out)
{
	*out = (struct weir_loop_stats){
		.launches = loop->counters.launches,
		.evictions = loop->state.evictions,
		.blocked = loop->state.blocked,
		.blocked_ns = loop->state.blocked_time,
		.requests = loop->counters.requests,
		.batches = __atomic_load_n(&loop->rings.batches, __ATOMIC_RELAXED),
		.refused = __atomic_load_n(&loop->rings.refused, __ATOMIC_RELAXED),
		.bytes_in = loop->counters.bytes_in,
		.bytes_out = loop->counters.bytes_out,
		.gds = loop->counters.gds,
		.blocks = loop->gpu.blocks,
		.polls = launches_last(loop)->polls,
		.uring = loop->engine->type == &io_uring_engine,
		.on_gpu = loop->on_gpu && !launches_report(loop),
		.linger_ns = loop->stay.ns,
		.ran_ns = loop->state.ran,
	};
	for (size_t i = 0; i < WAITS_KINDS; i++)
		out->waiting[i] =
			atomic_load_explicit(&loop->state.waiting[i], memory_order_relaxed);
}
