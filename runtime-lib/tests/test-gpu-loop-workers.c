/* Threads for operations that block. */
#include "loop/workers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* How many run at a time, at most; none ends before it may. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned running, most;
	bool ends;
} busy = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int64_t be_busy(struct io *io)
{
	pthread_mutex_lock(&busy.lock);
	busy.running++;
	if (busy.most < busy.running)
		busy.most = busy.running;
	pthread_cond_broadcast(&busy.changed);
	while (!busy.ends)
		pthread_cond_wait(&busy.changed, &busy.lock);
	busy.running--;
	pthread_mutex_unlock(&busy.lock);
	return (int64_t)io->size;
}

static unsigned wait_for_running(unsigned running)
{
	pthread_mutex_lock(&busy.lock);
	while (busy.running < running)
		pthread_cond_wait(&busy.changed, &busy.lock);
	running = busy.running;
	pthread_mutex_unlock(&busy.lock);
	return running;
}

static void end_running(void)
{
	pthread_mutex_lock(&busy.lock);
	busy.ends = true;
	pthread_cond_broadcast(&busy.changed);
	pthread_mutex_unlock(&busy.lock);
}

static void workers_are_limited_and_tell_once(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct io ios[10];
	struct workers *workers;
	eventfd_t count = 0;
	unsigned reaped = 0;

	(void)state;
	assert_int_equal(workers_new(&workers, 3, 0, 0, event), 0);
	for (unsigned i = 0; i < 10; i++) {
		ios[i] = (struct io){.kind = IO_CALL, .run = be_busy, .size = i};
		workers_submit(workers, &ios[i]);
	}
	wait_for_running(3);
	assert_true(workers_cancel(workers, &ios[9]));
	assert_ptr_equal(workers_reap(workers), &ios[9]);
	assert_int_equal(ios[9].result, -ECANCELED);
	assert_int_equal(eventfd_read(event, &count), -1); /* nobody watches */
	assert_false(workers_watch(workers));

	end_running();
	assert_int_equal(poll(&(struct pollfd){.fd = event, .events = POLLIN}, 1, 10000), 1);
	assert_true(workers_watch(workers)); /* one has ended */
	while (reaped < 9) {
		struct io *io = workers_reap(workers);
		if (io)
			assert_ptr_equal(&ios[io->result], io);
		else
			usleep(1000);
		reaped += io != NULL;
	}
	assert_int_equal(eventfd_read(event, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(busy.most, 3);
	workers_free(workers);
	close(event);
}

static unsigned threads_of_process(void)
{
	unsigned n = 0;
	DIR *tasks = opendir("/proc/self/task");

	for (const struct dirent *task; (task = readdir(tasks));)
		n += task->d_name[0] != '.';
	closedir(tasks);
	return n;
}

/* Before there is anything to do. */
static void threads_start_at_once(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	unsigned before = threads_of_process();
	struct workers *workers;

	(void)state;
	assert_int_equal(workers_new(&workers, 3, 2, 0, event), 0);
	assert_int_equal(threads_of_process(), before);
	workers_start(workers);
	assert_int_equal(threads_of_process(), before + 3);
	workers_free(workers);
	close(event);
}

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Watching takes a processor. Without the first operation they would sleep, and this would not end.
 */
static void threads_that_are_woken_watch(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct workers *workers;

	(void)state;
	assert_int_equal(workers_new(&workers, 2, 1, 60000000, event), 0);
	workers_start(workers);
	uint64_t before = cpu_ns();
	workers_wake(workers);
	while (cpu_ns() < before + 50000000)
		usleep(1000);
	workers_free(workers);
	close(event);
}

/* Goes on until end_running(). */
static void submit_busy(struct workers *workers, struct io *io)
{
	*io = (struct io){.kind = IO_CALL, .run = be_busy};
	workers_submit(workers, io);
}

static void reap_all(struct workers *workers, unsigned n)
{
	while (n > 0)
		n -= workers_reap(workers) != NULL;
}

/* Four operations wait before the spare thread starts, if it is of use. When it sleeps, it is woken
 * for as many. */
static void spare_threads_work_while_many_wait(void **state)
{
	enum { THREADS = 2, MANY = 4, OPERATIONS = THREADS + MANY + 1 };
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct io ios[OPERATIONS];
	struct workers *workers;

	(void)state;
	assert_int_equal(workers_new(&workers, THREADS, 1, 0, event), 0);
	for (unsigned round = 0; round < 3; round++) {
		busy.ends = false;
		workers_hurry(workers, true);
		for (unsigned i = 0; i < OPERATIONS; i++) {
			submit_busy(workers, &ios[i]);
			wait_for_running(i < THREADS ? i + 1 : THREADS);
			if (!round && i == OPERATIONS - 2) {
				usleep(5000);
				assert_int_equal(wait_for_running(0), THREADS);
			}
		}
		assert_int_equal(wait_for_running(THREADS + 1), THREADS + 1);
		end_running();
		reap_all(workers, OPERATIONS);
		usleep(1000); /* all of them sleep, mostly */
	}
	workers_free(workers);
	close(event);
}

/* How many short operations ran at a time, at most. */
static _Atomic unsigned short_ones, short_most;

static int64_t be_short(struct io *io)
{
	unsigned now = ++short_ones;

	(void)io;
	if (now > short_most)
		short_most = now;
	usleep(200);
	short_ones--;
	return 0;
}

/* While it is of no use it does not start; and when it has worked, it leaves the rest to the
 * others. */
static void spare_threads_rest_while_nobody_hurries(void **state)
{
	enum { MANY = 30 };
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	unsigned before = threads_of_process();
	struct io ios[MANY];
	struct workers *workers;

	(void)state;
	assert_int_equal(workers_new(&workers, 1, 1, 0, event), 0);
	for (unsigned hurried = 0; hurried < 2; hurried++) {
		busy.ends = false;
		workers_hurry(workers, hurried);
		for (unsigned i = 0; i <= hurried; i++)
			submit_busy(workers, &ios[i]);
		wait_for_running(1);
		for (unsigned i = 1 + hurried; i < MANY; i++) {
			ios[i] = (struct io){.kind = IO_CALL, .run = be_short};
			workers_submit(workers, &ios[i]);
		}
		assert_int_equal(wait_for_running(1 + hurried), 1 + hurried);
		assert_int_equal(threads_of_process(), before + 1 + hurried);
		workers_hurry(workers, false);
		end_running();
		reap_all(workers, MANY);
		assert_int_equal(short_most, 1);
	}
	workers_free(workers);
	close(event);
}

static int64_t count_up(struct io *io)
{
	atomic_fetch_add((_Atomic unsigned *)io->buffer, 1);
	return 0;
}

/* Whether threads sleep, watch the queue, or are about to do the other, everything is done once. */
static void watching_threads_miss_nothing(void **state)
{
	enum { ROUNDS = 300, AT_ONCE = 5 };
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct io ios[AT_ONCE];
	struct workers *workers;
	_Atomic unsigned done = 0;

	(void)state;
	assert_int_equal(workers_new(&workers, 3, 0, 50, event), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned n = 1 + round % AT_ONCE;
		for (unsigned i = 0; i < n; i++) {
			ios[i] = (struct io){.kind = IO_CALL, .run = count_up, .buffer = &done};
			workers_submit(workers, &ios[i]);
		}
		for (unsigned reaped = 0; reaped < n;) {
			if (workers_reap(workers))
				reaped++;
			else if (!workers_watch(workers))
				assert_int_equal(poll(&(struct pollfd){event, POLLIN, 0}, 1, 60000),
						 1);
		}
		usleep(round % 7 * 20); /* around the time for which they watch */
	}
	workers_free(workers);
	unsigned all = 0;
	for (unsigned round = 0; round < ROUNDS; round++)
		all += 1 + round % AT_ONCE;
	assert_int_equal(done, all);
	close(event);
}

static int64_t tell_thread(struct io *io)
{
	pid_t thread = gettid();

	*(_Atomic pid_t *)io->buffer = thread;
	return thread;
}

/* The state of a thread of this process, as in its stat: 'R' runs, 'S' sleeps. */
static char state_of(pid_t thread)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	FILE *stat = fopen(path, "re");
	assert_non_null(stat);
	assert_int_equal(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
	fclose(stat);
	return state;
}

#define MINUTE_US 60000000u

/* What a thread does that has had nothing to do for 50 ms. Such a thread ends at once. */
static char idle_state(uint32_t watch_us)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	_Atomic pid_t thread = 0;
	struct io io = {.kind = IO_CALL, .run = tell_thread, .buffer = &thread};
	struct workers *workers;

	assert_int_equal(workers_new(&workers, 1, 0, watch_us, event), 0);
	workers_submit(workers, &io);
	while (!workers_reap(workers))
		usleep(100);
	usleep(50000);
	char state = state_of(thread);
	time_t before = time(NULL);
	workers_free(workers);
	assert_true(time(NULL) - before < 20);
	close(event);
	return state;
}

static void threads_watch_for_as_long_as_they_are_told(void **state)
{
	(void)state;
	assert_int_equal(idle_state(0), 'S');
	assert_int_equal(idle_state(200), 'S');
	assert_int_equal(idle_state(MINUTE_US), 'R');
}

static void threads_that_had_nothing_to_do_sleep(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct workers *workers;

	(void)state;
	assert_int_equal(workers_new(&workers, 3, 0, MINUTE_US, event), 0);
	workers_start(workers);
	usleep(10000);
	clock_t before = clock();
	usleep(100000);
	assert_true(clock() - before < CLOCKS_PER_SEC / 50);
	workers_free(workers);
	close(event);
}

static int64_t read_by_worker(struct workers *workers, int fd, void *buffer, size_t size,
			      bool at_end)
{
	struct io io = {.kind = IO_READ_CACHED, .fd = fd, .buffer = buffer, .size = size}, *done;

	workers_submit(workers, &io);
	while (!(done = workers_reap(workers)))
		usleep(100);
	assert_ptr_equal(done, &io);
	assert_int_equal(workers_watch(workers), false);
	assert_int_equal(io.at_end, at_end);
	return io.result;
}

static void workers_read_the_page_cache(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), ends[2];
	struct workers *workers;
	char path[] = "/tmp/weir-loop-cached-XXXXXX", back[10] = "";
	int fd = mkostemp(path, O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(workers_new(&workers, 1, 0, 0, event), 0);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(read_by_worker(workers, fd, back, sizeof(back), true), 3);
	assert_int_equal(read_by_worker(workers, fd, back, 3, false), 3);
	assert_string_equal(back, "abc");
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(read_by_worker(workers, ends[0], back, sizeof(back), false), -ESPIPE);
	workers_free(workers);
	close(ends[0]);
	close(ends[1]);
	close(fd);
	close(event);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_are_limited_and_tell_once),
		cmocka_unit_test(threads_start_at_once),
		cmocka_unit_test(threads_that_are_woken_watch),
		cmocka_unit_test(spare_threads_work_while_many_wait),
		cmocka_unit_test(spare_threads_rest_while_nobody_hurries),
		cmocka_unit_test(watching_threads_miss_nothing),
		cmocka_unit_test(threads_watch_for_as_long_as_they_are_told),
		cmocka_unit_test(threads_that_had_nothing_to_do_sleep),
		cmocka_unit_test(workers_read_the_page_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
