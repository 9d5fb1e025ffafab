#include "workloads/stream-order/storms.h"

#include "workloads/stream-order/ops.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/base.h>
#include <weir/weir.h>

#include "spin.h"

#define SIGNALS_EVERY 200000L /* ns */
#define CHILD_MS      60000u  /* then it hangs */
#define LAUNCHES_MAX  8u
#define ROUNDS_MAX    6u
#define THREADS       4u
#define MULTIPLY      3u
#define ADD           5u
#define DELAY_MAX     200u

extern const char stream_order_ptx[];

static struct {
	const struct workload *workload;
	pthread_t thread;
	_Atomic bool over;
} storm;

static void do_nothing(int number)
{
	(void)number;
}

timer_t signals_begin(void)
{
	/* Without SA_RESTART: calls that wait end with EINTR. */
	const struct sigaction action = {.sa_handler = do_nothing};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	const struct itimerspec period = {.it_value.tv_nsec = SIGNALS_EVERY,
					  .it_interval.tv_nsec = SIGNALS_EVERY};
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (sigaction(SIGUSR1, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &period, NULL))
		workload_fail("no timer");
	return timer;
}

void signals_end(timer_t timer)
{
	timer_delete(timer);
}

/* CUDA does not work there, and its calls and its end do not hang. */
static _Noreturn void be_child(bool runs_handlers)
{
	CUstream stream = NULL;

	cuStreamSynchronize(stream);
	weir_expect(stream, 100);
	cuCtxSynchronize();
	if (runs_handlers)
		exit(0);
	_exit(0);
}

static void pass_child(struct random *random)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		return;
	if (!child)
		be_child(random_below(random, 2));
	for (unsigned i = 0; i < CHILD_MS; i++) {
		pid_t ended = waitpid(child, &status, WNOHANG);

		if (ended == child && status)
			workload_fail("a forked child ended with status %#x", (unsigned)status);
		if (ended == child)
			return;
		usleep(1000);
	}
	kill(child, SIGKILL);
	workload_fail("a forked child hangs");
}

/* One word that kernels in a stream change. */
struct word {
	CUdeviceptr data;
	uint32_t expected;
	CUfunction step;
	struct random random;
};

static void word_init(struct word *word, CUfunction step, struct random *random)
{
	*word = (struct word){.step = step, .random = {random_next(random)}};
	CU(cuMemAlloc(&word->data, sizeof(uint32_t)));
	CU(cuMemsetD32(word->data, 0, 1));
}

static void word_launch(struct word *word, CUstream stream)
{
	for (uint32_t n = 1 + random_below(&word->random, LAUNCHES_MAX); n; n--) {
		uint32_t words = 1, multiply = MULTIPLY, add = ADD,
			 delay = random_below(&word->random, DELAY_MAX);
		void *parameters[] = {&word->data, &words, &multiply, &add, &delay};

		CU(cuLaunchKernel(word->step, 1, 1, 1, STEP_THREADS, 1, 1, 0, stream, parameters,
				  NULL));
		word->expected = spin_jump(word->expected, delay) * MULTIPLY + ADD;
	}
}

static void word_check(const struct word *word, const char *where)
{
	uint32_t value;

	CU(cuMemcpyDtoH(&value, word->data, sizeof(value)));
	if (value != word->expected)
		workload_fail("%s: the word is %#x, not %#x", where, value, word->expected);
}

/* Ends with its work outstanding. */
static void *be_thread(void *argument)
{
	struct word *word = argument;

	CU(cuCtxSetCurrent(storm.workload->context));
	for (uint32_t n = 1 + random_below(&word->random, ROUNDS_MAX); n; n--) {
		word_launch(word, CU_STREAM_PER_THREAD);
		usleep(random_below(&word->random, 1000));
	}
	return NULL;
}

/* One after the other, so the stream of each may take over what was that of another one's. */
static void pass_threads(struct random *random)
{
	pthread_t thread;
	struct word words[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		word_init(&words[i], workload_kernel(storm.workload, "step"), random);
	for (unsigned i = 0; i < THREADS; i++) {
		if (pthread_create(&thread, NULL, be_thread, &words[i]))
			workload_fail("cannot start a thread");
		pthread_join(thread, NULL);
	}
	capture_lock();
	CU(cuCtxSynchronize());
	for (unsigned i = 0; i < THREADS; i++) {
		word_check(&words[i], "a thread that has ended");
		CU(cuMemFree(words[i].data));
	}
	capture_unlock();
}

/* Ends with work outstanding, or after a check. */
static void pass_context(struct random *random)
{
	CUcontext context;
	CUmodule module;
	CUfunction step;
	CUstream stream[2];
	struct word word[2];
	bool checks = random_below(random, 2);

	CU(cuCtxCreate(&context, NULL, 0, storm.workload->device));
	CU(cuModuleLoadData(&module, stream_order_ptx));
	CU(cuModuleGetFunction(&step, module, "step"));
	for (unsigned i = 0; i < countof(stream); i++) {
		CU(cuStreamCreate(&stream[i], i ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
		word_init(&word[i], step, random);
		CU(cuCtxSynchronize());
		weir_set_priority(stream[i], (int)random_below(random, 3) - 1);
		word_launch(&word[i], stream[i]);
	}
	/* A stream's work goes on when the stream has ended. */
	CU(cuStreamDestroy(stream[0]));
	if (checks) {
		CU(cuCtxSynchronize());
		word_check(&word[0], "a stream that has ended");
		word_check(&word[1], "a second context");
	}
	CU(cuCtxDestroy(context));
	CU(cuCtxSetCurrent(storm.workload->context));
}

static void *rage(void *unused)
{
	static void (*const kinds[])(struct random *) = {pass_child, pass_threads, pass_context};
	struct random random = {storm.workload->seed + 1};

	(void)unused;
	CU(cuCtxSetCurrent(storm.workload->context));
	while (!atomic_load(&storm.over)) {
		kinds[random_below(&random, countof(kinds))](&random);
		usleep(random_below(&random, 3000));
	}
	return NULL;
}

void storms_begin(const struct workload *workload)
{
	storm.workload = workload;
	if (pthread_create(&storm.thread, NULL, rage, NULL))
		workload_fail("cannot start a thread");
}

void storms_end(void)
{
	atomic_store(&storm.over, true);
	pthread_join(storm.thread, NULL);
}
