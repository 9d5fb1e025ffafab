#include "client/stream.h"

#include "client/level-binding.h"
#include "client/worker.h"
#include "shim/thread.h"
#include "shim/weak-libc.h"

#include "weir/log.h"

#define BUCKETS 16384u
#define NUMBERS 65536u /* of threads */

struct streams streams_table[CLIENTS_MAX];
static struct stream pool[STREAMS_MAX];
_Atomic int capture_count;

static _Atomic size_t used; /* records of the pool; all others are empty */
static _Atomic(struct stream *) buckets[BUCKETS];

/* The stream that this thread used last, and this thread's number in keys of per-thread streams. */
static __thread struct stream *recent;
static __thread uint64_t thread_number;

static pthread_key_t thread_key; /* its destructor ends the per-thread streams of a thread */

/* Handles and contexts are pointers whose low bits are zero, so tags tell the three kinds of keys
 * apart. */
static uint64_t legacy_key(CUcontext context)
{
	return (uint64_t)(uintptr_t)context | 1;
}

static uint64_t per_thread_key(CUcontext context)
{
	return ((uint64_t)(uintptr_t)context | 2) ^ thread_number << 48;
}

static _Atomic(struct stream *) *bucket_of(uint64_t key)
{
	return &buckets[(key ^ key >> 12 ^ key >> 32) / 8 % BUCKETS];
}

static struct stream *lookup(uint64_t key)
{
	struct stream *stream = load_acquire(bucket_of(key));

	while (stream && load_acquire(&stream->key) != key)
		stream = stream->next;
	return stream;
}

static void reset(struct stream *stream, CUstream handle, bool per_thread, struct client *client)
{
	stream->life++;
	stream->priority = 0;
	stream->level = STREAM_LEVEL_OWN;
	stream->handle = handle;
	stream->per_thread = per_thread;
	stream->of_loop = false;
	stream->uncounted = 0;
	stream->client = client;
	stream->begun = stream->issued = stream->completed = 0;
	stream->predicted = stream->executed = stream->unknown = 0;
	/* Unknown work may be in the stream already: the first launch gets a gate. */
	stream->since_gate = UINT64_MAX / 2;
	stream->marker_wanted = 0;
	stream->marked = stream->marked_predicted = stream->left_at = 0;
	stream->raise_mark = 0;
	stream->gated_inside = stream->gated_since = 0;
	stream->capturing = 0;
	stream->slot = NULL;
	stream->slot_wanted = 0;
}

/* The worker may have asked the driver about a stream that is gone: the record is not free until
 * the worker has seen that, or the answer would count for the next stream. A thread that ends
 * leaves its events in the record, for the same context. */
static bool is_free(const struct stream *stream, const struct client *client)
{
	return !atomic_load(&stream->key) && worker_left(atomic_load(&stream->gone_at)) &&
	       stream->client == client;
}

static void note_gone(struct streams *streams, unsigned level)
{
	uint32_t seen = atomic_load(&streams->gone_level), next;

	do {
		uint32_t count = (seen >> 8) + 1;
		next = count << 8 | (uint32_t)smaller(level, streams_gone_level(seen));
	} while (!atomic_compare_exchange_weak(&streams->gone_level, &seen, next));
}

/* From here on nobody finds the stream of this key. False: another thread ends it. */
static bool forget(struct stream *stream, uint64_t key)
{
	if (key <= STREAM_GOES || !atomic_compare_exchange_strong(&stream->key, &key, STREAM_GOES))
		return false;
	if (atomic_exchange(&stream->capturing, 0))
		atomic_fetch_sub(&capture_count, 1);
	struct streams *streams = streams_of(stream->client);
	if (stream_outstanding(stream))
		note_gone(streams, atomic_load(&stream->level));
	atomic_fetch_add(&streams->gone_launches, atomic_load(&stream->begun));
	if (!atomic_load(&stream->of_loop))
		atomic_fetch_add(&streams->gone_predicted, atomic_load(&stream->predicted));
	return true;
}

/* Last, by the thread that forgot the stream. */
static void free_record(struct stream *stream)
{
	atomic_store(&stream->gone_at, worker_visit());
	atomic_store(&stream->key, 0);
}

/* Keeps two threads from making two records for one stream. Not held over a driver call. */
static pthread_mutex_t inserting = PTHREAD_MUTEX_INITIALIZER;

/* Slow path, once for each stream. */
static struct stream *insert(uint64_t key, CUstream handle, bool per_thread, struct client *client)
{
	_Atomic(struct stream *) *bucket = bucket_of(key);

	locked(&inserting);
	struct stream *stream = lookup(key);
	if (stream)
		return stream;
	/* A record of a stream that is gone, else a new one. Records keep their bucket. */
	stream = atomic_load(bucket);
	while (stream && !is_free(stream, client))
		stream = stream->next;
	if (stream) {
		reset(stream, handle, per_thread, client);
		atomic_store(&stream->key, key);
	} else if (atomic_load(&used) < STREAMS_MAX) {
		stream = &pool[atomic_load(&used)];
		reset(stream, handle, per_thread, client);
		stream->next = atomic_load(bucket);
		stream->sibling = atomic_load(&streams_of(client)->first);
		atomic_store(&stream->key, key);
		atomic_store(bucket, stream);
		atomic_store(&streams_of(client)->first, stream);
		atomic_fetch_add(&used, 1);
	}
	return stream;
}

/* Bit: a living thread has this number. Two must not share one, and with it a record. 0 is
 * nobody's. */
static _Atomic uint64_t numbers[NUMBERS / 64] = {1};

/* 0: none left. Begins after the last one taken, so that numbers come again as late as possible. */
static uint64_t take_number(void)
{
	static _Atomic uint32_t last;
	uint32_t next = atomic_fetch_add(&last, 1) + 1;

	for (uint32_t i = 0; i < NUMBERS; i++, next++) {
		uint64_t bit = 1ull << next % 64;
		if (!(atomic_fetch_or(&numbers[next % NUMBERS / 64], bit) & bit))
			return next % NUMBERS;
	}
	return 0;
}

static void thread_ends(void *number)
{
	uint64_t own = (uint64_t)(uintptr_t)number;

	for (struct stream *s = pool; s < pool + atomic_load(&used); s++) {
		uint64_t key = atomic_load(&s->key);
		if (s->per_thread && key >> 48 == own && forget(s, key)) {
			each_subsystem(stream_gone, s);
			free_record(s);
		}
	}
	/* Later destructors of the thread may still launch. */
	thread_number = 0;
	atomic_fetch_and(&numbers[own / 64], ~(1ull << own % 64));
}

static void make_thread_key(void)
{
	if (!weak_libc.pthread_key_create ||
	    weak_libc.pthread_key_create(&thread_key, thread_ends) != 0)
		log_warning(
			"no thread-specific data: per-thread streams of ended threads stay known");
}

/* User-space addresses have 47 bits, so a number above bit 48 names the thread in a key. */
static void name_thread(void)
{
	static struct once key;

	if (thread_number)
		return;
	once(&key, make_thread_key);
	thread_number = take_number();
	if (weak_libc.pthread_setspecific)
		weak_libc.pthread_setspecific(thread_key, (void *)(uintptr_t)thread_number);
}

struct name {
	uint64_t key; /* 0: no such stream now */
	CUstream handle;
	CUcontext context; /* NULL: ask the driver */
	bool per_thread;
};

/* Not a default stream: its handle is its key. */
static bool is_own(CUstream handle)
{
	return (uintptr_t)handle > (uintptr_t)CU_STREAM_PER_THREAD;
}

/* Filled in place: returning the structure by value would stall on store forwarding. */
static void resolve(struct name *name, CUstream handle, bool per_thread)
{
	*name = (struct name){.handle = handle};
	if (is_own(handle)) {
		name->key = (uint64_t)(uintptr_t)handle;
		return;
	}
	if (real(cuCtxGetCurrent)(&name->context) != CUDA_SUCCESS || !name->context)
		return;
	name->per_thread = handle == CU_STREAM_PER_THREAD || (!handle && per_thread);
	if (name->per_thread) {
		name_thread();
		if (!thread_number)
			return;
		name->handle = CU_STREAM_PER_THREAD;
		name->key = per_thread_key(name->context);
	} else {
		name->handle = CU_STREAM_LEGACY;
		name->key = legacy_key(name->context);
	}
}

static struct stream *make(struct name *name)
{
	if (!name->context && real(cuStreamGetCtx)(name->handle, &name->context) != CUDA_SUCCESS)
		return NULL;
	struct client *client = client_of(name->context);
	if (!client)
		return NULL;
	struct stream *stream = insert(name->key, name->handle, name->per_thread, client);
	if (!stream) {
		log_limited(LOG_WARNING, 3600, "more than %d streams: the others are not governed",
			    STREAMS_MAX);
		return NULL;
	}
	each_subsystem(stream_made, stream);
	/* The worker cannot name another thread's stream, so each launch records a marker. */
	if (name->per_thread)
		stream_want_marker(stream);
	return stream;
}

/* The stream that this thread used last, or NULL. */
static struct stream *again(uint64_t key)
{
	return recent && load_acquire(&recent->key) == key ? recent : NULL;
}

struct stream *stream_known(CUstream handle, bool per_thread)
{
	struct name name;

	resolve(&name, handle, per_thread);
	if (!name.key)
		return NULL;
	struct stream *stream = again(name.key);
	return stream ? stream : lookup(name.key);
}

kept_apart static struct stream *find_or_make(CUstream handle, bool per_thread)
{
	struct name name;

	resolve(&name, handle, per_thread);
	if (!name.key)
		return NULL;
	struct stream *stream = again(name.key);
	if (stream)
		return stream;
	stream = lookup(name.key);
	if (!stream)
		stream = make(&name);
	if (stream)
		recent = stream;
	return stream;
}

launch_path struct stream *stream_find(CUstream handle, bool per_thread)
{
	/* Mostly a stream that the program made, and the same as last time. */
	struct stream *stream = is_own(handle) ? again((uint64_t)(uintptr_t)handle) : NULL;

	return stream ? stream : find_or_make(handle, per_thread);
}

void stream_gone(CUstream handle)
{
	uint64_t key = (uint64_t)(uintptr_t)handle;
	struct stream *stream = lookup(key);

	if (key <= (uintptr_t)CU_STREAM_PER_THREAD || !stream || !forget(stream, key))
		return;
	/* The record stays as it is then, and is no other stream's. */
	if (!worker_grace())
		return;
	CUevent marker = atomic_exchange(&stream->marker, NULL);
	if (marker)
		real(cuEventDestroy_v2)(marker);
	stream_markers_end(stream->markers, true);
	each_subsystem(stream_gone, stream);
	free_record(stream);
}

void stream_forget(struct client *client)
{
	for (struct stream *s = atomic_load(&streams_of(client)->first); s; s = s->sibling) {
		bool ours = forget(s, atomic_load(&s->key));
		s->marker = NULL; /* ends with its context, even if the stream ended before */
		stream_markers_end(s->markers, false);
		if (ours)
			free_record(s);
	}
}

void stream_fork(void)
{
	pthread_mutex_init(&inserting, NULL);
	recent = NULL;
	for (struct stream *s = pool; s < pool + atomic_load(&used); s++) {
		atomic_store(&s->key, 0);
		stream_markers_end(s->markers, false);
	}
}

void stream_init(struct client *client)
{
	struct streams *streams = streams_of(client);

	streams->gone_launches = streams->gone_predicted = 0;
	streams->begun = streams->executed = 0;
	streams->levels = 0;
	streams->gone_level = STREAM_LEVEL_OWN;
}
