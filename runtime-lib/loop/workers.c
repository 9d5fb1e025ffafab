#include "loop/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define STACK (256u << 10)
#define MANY  4u /* operations that wait: spare threads are of use */

struct queue {
	struct io *first, **end;
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct queue todo, done;
	bool watched;
	bool begun;        /* there was something to do, or will be soon */
	_Atomic bool ends; /* is written with the lock */
	uint64_t watch_ns;
	unsigned threads, threads_max, sleeping;
	unsigned spare;            /* threads */
	_Atomic bool hurried;      /* they are of use */
	_Atomic unsigned queued;   /* of `todo`, what no thread has claimed; only claim() is without
				      the lock */
	_Atomic unsigned watching; /* threads that look at it */
	_Atomic unsigned ended;    /* of `done` */
	struct io *reaped;         /* the owner's: taken from `done`, to be returned */
	int event;
	pthread_t thread[];
};

static void append(struct queue *queue, struct io *io)
{
	io->next = NULL;
	*queue->end = io;
	queue->end = &io->next;
}

static struct io *take(struct queue *queue)
{
	struct io *io = queue->first;

	if (io && !(queue->first = io->next))
		queue->end = &queue->first;
	return io;
}

static int64_t write_all(struct io *io)
{
	const uint8_t *bytes = io->buffer;

	while (io->done < io->size) {
		ssize_t n = pwrite(io->fd, bytes + io->done, io->size - io->done,
				   (off_t)(io->offset + io->done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return io->done ? (int64_t)io->done : n ? -errno : -EIO;
		io->done += (uint64_t)n;
	}
	return (int64_t)io->done;
}

/* Some file systems cannot tell whether they would wait. */
static ssize_t read_cached_once(const struct io *io, uint64_t done)
{
	struct iovec part = {.iov_base = (uint8_t *)io->buffer + done, .iov_len = io->size - done};
	off_t offset = (off_t)(io->offset + done);
	ssize_t n = preadv2(io->fd, &part, 1, offset, RWF_NOWAIT);

	if (n < 0 && errno == EOPNOTSUPP)
		n = pread(io->fd, part.iov_base, part.iov_len, offset);
	return n;
}

/* A short read is followed by another, which says whether the file ends there. */
static ssize_t read_cached(struct io *io)
{
	ssize_t n = read_cached_once(io, 0), more = 1;

	io->at_end = false;
	for (uint64_t done = n > 0 ? (uint64_t)n : 0; n > 0 && more > 0 && done < io->size;) {
		more = read_cached_once(io, done);
		done += more > 0 ? (uint64_t)more : 0;
		n = (ssize_t)done;
		io->at_end = !more;
	}
	return n;
}

static int64_t perform(struct io *io)
{
	int64_t result;

	do {
		switch (io->kind) {
		case IO_OPEN:
			result = open(io->buffer, io->flags, io->mode);
			break;
		case IO_READ:
			result = pread(io->fd, io->buffer, io->size, (off_t)io->offset);
			break;
		case IO_READ_CACHED:
			result = read_cached(io);
			break;
		case IO_FSYNC:
			result = fsync(io->fd);
			break;
		case IO_WRITE:
			return write_all(io);
		case IO_CALL:
			return io->run(io);
		default:
			return -ENOSYS;
		}
	} while (result < 0 && errno == EINTR);
	return result < 0 ? -errno : result;
}

static void finish(struct workers *workers, struct io *io)
{
	append(&workers->done, io);
	workers->ended++;
	if (workers->watched)
		eventfd_write(workers->event, 1);
	workers->watched = false;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* True: the calling thread may take one entry of the queue. So only threads that will find an entry
 * wait for the lock. */
static bool claim(struct workers *workers)
{
	unsigned n = atomic_load_explicit(&workers->queued, memory_order_relaxed);

	while (n && !atomic_compare_exchange_weak(&workers->queued, &n, n - 1))
		continue;
	return n > 0;
}

/* Watches the queue for a while. True: an entry was claimed. A thread that claims does not
 * count as watching any more: the next entry must wake another thread. */
static bool watch_queue(struct workers *workers)
{
	uint64_t end = now_ns() + workers->watch_ns;

	atomic_fetch_add(&workers->watching, 1);
	while (!workers->ends && now_ns() < end) {
		if (!atomic_load_explicit(&workers->queued, memory_order_relaxed))
			continue;
		atomic_fetch_sub(&workers->watching, 1);
		if (claim(workers))
			return true;
		atomic_fetch_add(&workers->watching, 1);
	}
	atomic_fetch_sub(&workers->watching, 1);
	return false;
}

/* With the lock: without so many of those that are awake there are enough. */
static bool has_enough(const struct workers *workers, unsigned but)
{
	return workers->threads - workers->sleeping >= workers->threads_max - workers->spare + but;
}

/* With the lock: the calling thread is of no use. */
static bool is_one_too_many(const struct workers *workers)
{
	return has_enough(workers, 1) && !workers->hurried;
}

/* With the lock, when the thread has nothing to do: watches the queue, if it is to be quick, and
 * sleeps. Threads beyond the usual ones do not watch. True: an entry was claimed. */
static bool rest(struct workers *workers)
{
	bool claimed = false;

	if (workers->begun && workers->watch_ns && !has_enough(workers, 1)) {
		pthread_mutex_unlock(&workers->lock);
		claimed = watch_queue(workers);
		pthread_mutex_lock(&workers->lock);
	}
	if (!claimed && !is_one_too_many(workers))
		claimed = claim(workers);
	if (!claimed && !workers->ends) {
		workers->sleeping++;
		pthread_cond_wait(&workers->more, &workers->lock);
		workers->sleeping--;
	}
	return claimed;
}

static void *work(void *data)
{
	struct workers *workers = data;
	bool claimed = false;

	pthread_mutex_lock(&workers->lock);
	while (claimed || !workers->ends) {
		if (!claimed && (is_one_too_many(workers) || !claim(workers))) {
			claimed = rest(workers);
			continue;
		}
		claimed = false;
		struct io *io = take(&workers->todo);
		pthread_mutex_unlock(&workers->lock);
		io->result = perform(io);
		pthread_mutex_lock(&workers->lock);
		finish(workers, io);
	}
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

/* With the lock. The program's signals are not for this thread. */
static void start_thread(struct workers *workers)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	if (!pthread_create(&workers->thread[workers->threads], &attributes, work, workers))
		workers->threads++;
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int workers_new(struct workers **out, unsigned threads, unsigned spare, uint32_t watch_us,
		int event)
{
	struct workers *workers =
		calloc(1, sizeof(*workers) + (threads + spare) * sizeof(pthread_t));
	pthread_mutexattr_t attributes;

	if (!workers)
		return -ENOMEM;
	/* It is held for less than a sleep takes. */
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&workers->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	pthread_cond_init(&workers->more, NULL);
	workers->todo.end = &workers->todo.first;
	workers->done.end = &workers->done.first;
	workers->threads_max = threads + spare;
	workers->spare = spare;
	workers->watch_ns = watch_us * 1000ull;
	workers->event = event;
	*out = workers;
	return 0;
}

void workers_start(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	for (unsigned i = workers->threads; i < workers->threads_max - workers->spare; i++)
		start_thread(workers);
	pthread_mutex_unlock(&workers->lock);
}

void workers_wake(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	workers->begun = true;
	pthread_mutex_unlock(&workers->lock);
	pthread_cond_broadcast(&workers->more);
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	workers->ends = true;
	pthread_cond_broadcast(&workers->more);
	pthread_mutex_unlock(&workers->lock);
	for (unsigned i = 0; i < workers->threads; i++)
		pthread_join(workers->thread[i], NULL);
	pthread_cond_destroy(&workers->more);
	pthread_mutex_destroy(&workers->lock);
	free(workers);
}

void workers_hurry(struct workers *workers, bool hurried)
{
	atomic_store_explicit(&workers->hurried, hurried, memory_order_relaxed);
}

/* With the lock, before an operation is added: no thread that is awake will soon take it. A spare
 * thread is of use only while many wait. */
static bool wants_another(const struct workers *workers)
{
	if (!has_enough(workers, 0))
		return workers->watching <= workers->queued;
	return workers->hurried && workers->watching + MANY <= workers->queued;
}

/* Threads that watch the queue need not be woken. */
void workers_submit(struct workers *workers, struct io *io)
{
	pthread_mutex_lock(&workers->lock);
	workers->begun = true;
	bool another = wants_another(workers), wakes = another && workers->sleeping;
	if (another && !wakes && workers->threads < workers->threads_max)
		start_thread(workers);
	if (workers->threads) {
		append(&workers->todo, io);
		workers->queued++;
	} else {
		io->result = -EAGAIN;
		finish(workers, io);
	}
	pthread_mutex_unlock(&workers->lock);
	if (wakes)
		pthread_cond_signal(&workers->more);
}

/* All at a time: the lock is left to the threads. */
struct io *workers_reap(struct workers *workers)
{
	if (!workers->reaped && workers->ended) {
		pthread_mutex_lock(&workers->lock);
		workers->reaped = workers->done.first;
		workers->done.first = NULL;
		workers->done.end = &workers->done.first;
		workers->ended = 0;
		pthread_mutex_unlock(&workers->lock);
	}
	struct io *io = workers->reaped;
	if (io)
		workers->reaped = io->next;
	return io;
}

bool workers_watch(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	bool some = workers->reaped || workers->done.first;
	workers->watched = !some;
	pthread_mutex_unlock(&workers->lock);
	return some;
}

bool workers_cancel(struct workers *workers, struct io *io)
{
	bool found = false;

	pthread_mutex_lock(&workers->lock);
	for (struct io **at = &workers->todo.first; *at; at = &(*at)->next) {
		/* Threads take the first ones; so that enough are left, one must be claimed. */
		if (*at != io || !claim(workers))
			continue;
		if (!(*at = io->next))
			workers->todo.end = at;
		io->result = -ECANCELED;
		finish(workers, io);
		found = true;
		break;
	}
	pthread_mutex_unlock(&workers->lock);
	return found;
}
