/* Runs a loop of kernels.cu: --kernel NAME with the number --n and the texts --text and --text2.
 * Prints what it left in out[0..3], and the loop's statistics. With --page FILE out[] is that
 * file's first page, which others may map, and there is no room for buffers. It begins when it is
 * ready and --go-file is there, and --stop-file ends it. With --split it launches the kernel, which
 * is no loop, --n times instead. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workload.h"

#include "weir/loop.h"

#define PAGE     4096u
#define TEXT_MAX 256u
#define OUT_SIZE (9u << 20)

extern const char kernels_ptx[];

struct runner {
	struct workload w;
	const char *kernel, *text, *text2, *page;
	uint64_t n, blocks, per_sm, threads, files;
	bool pool, split;
	double seconds;
	struct weir_loop *loop;
	uint64_t *mapped;
	CUdeviceptr out, texts;
	_Atomic bool ended;
};

static void *watch(void *data)
{
	struct runner *runner = data;

	while (!runner->ended) {
		if (runner->w.stop_file && workload_stopped(&runner->w)) {
			weir_loop_stop(runner->loop);
			break;
		}
		usleep(5000);
	}
	return NULL;
}

static void map_page(struct runner *runner)
{
	int fd = open(runner->page, O_RDWR | O_CLOEXEC);

	runner->mapped =
		fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (runner->mapped == MAP_FAILED)
		workload_fail("%s: %s", runner->page, strerror(errno));
	close(fd);
	CU(cuMemHostRegister(runner->mapped, PAGE, CU_MEMHOSTREGISTER_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&runner->out, runner->mapped, 0));
}

static void make_memory(struct runner *runner)
{
	char texts[2 * TEXT_MAX] = "";

	snprintf(texts, TEXT_MAX, "%s", runner->text ? runner->text : "");
	snprintf(texts + TEXT_MAX, TEXT_MAX, "%s", runner->text2 ? runner->text2 : "");
	CU(cuMemAlloc(&runner->texts, sizeof(texts)));
	workload_upload(runner->texts, texts, sizeof(texts));
	if (runner->page) {
		map_page(runner);
		return;
	}
	CU(cuMemAlloc(&runner->out, OUT_SIZE));
	CU(cuMemsetD8(runner->out, 0, OUT_SIZE));
	CU(cuCtxSynchronize());
}

static void print(struct runner *runner, int result, int code)
{
	struct weir_loop_stats stats;
	uint64_t out[4];

	weir_loop_stats(runner->loop, &stats);
	if (runner->mapped)
		memcpy(out, runner->mapped, sizeof(out));
	else
		CU(cuMemcpyDtoH(out, runner->out, sizeof(out)));
	printf("{\"seconds\": %.6f, \"result\": %d, \"code\": %d, \"out\": [%" PRId64 ", %" PRId64
	       ", %" PRId64 ", %" PRId64 "], \"launches\": %" PRIu64 ", \"evictions\": %" PRIu64
	       ", \"blocked\": %" PRIu64 ", \"requests\": %" PRIu64
	       ", \"blocks\": %u, \"polls\": %u, \"uring\": %s}\n",
	       runner->seconds, result, code, (int64_t)out[0], (int64_t)out[1], (int64_t)out[2],
	       (int64_t)out[3], stats.launches, stats.evictions, stats.blocked, stats.requests,
	       stats.blocks, stats.polls, stats.uring ? "true" : "false");
}

/* Blocks of the grid; 0: as many as fit. */
static uint32_t blocks_of(const struct runner *runner)
{
	CUdevice device;
	int sms;

	if (!runner->per_sm)
		return (uint32_t)runner->blocks;
	CU(cuCtxGetDevice(&device));
	CU(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	return (uint32_t)runner->per_sm * (uint32_t)sms;
}

static int run_loop(struct runner *runner)
{
	pthread_t watcher;
	int code = 0, result;

	if (pthread_create(&watcher, NULL, watch, runner))
		workload_fail("no thread");
	uint64_t began = now_ns();
	result = weir_loop_run(runner->loop,
			       (void *[]){NULL, &runner->out, &runner->texts, &runner->n}, &code);
	runner->seconds = (double)(now_ns() - began) / 1e9;
	runner->ended = true;
	pthread_join(watcher, NULL);
	print(runner, result, code);
	weir_loop_free(runner->loop);
	return 0;
}

static int run_split(struct runner *runner)
{
	CUfunction kernel = workload_kernel(&runner->w, runner->kernel);
	unsigned blocks = runner->blocks ? (unsigned)runner->blocks : 1;

	CU(cuCtxSynchronize());
	uint64_t began = now_ns();
	for (uint64_t i = 0; i < runner->n; i++)
		CU(cuLaunchKernel(kernel, blocks, 1, 1, (unsigned)runner->threads, 1, 1, 0, NULL,
				  (void *[]){&runner->out}, NULL));
	CU(cuCtxSynchronize());
	printf("{\"seconds\": %.6f, \"launches\": %" PRIu64 "}\n", (double)(now_ns() - began) / 1e9,
	       runner->n);
	return 0;
}

int main(int argc, char **argv)
{
	static struct runner runner = {.kernel = "tasks", .threads = 64};
	const struct workload_option own[] = {
		{"kernel", OPTION_TEXT, &runner.kernel, "of kernels.cu; default tasks"},
		{"text", OPTION_TEXT, &runner.text, "its text"},
		{"text2", OPTION_TEXT, &runner.text2, "its second text"},
		{"n", OPTION_NUMBER, &runner.n, "its number"},
		{"blocks", OPTION_NUMBER, &runner.blocks, "default: as many as fit"},
		{"per-sm", OPTION_NUMBER, &runner.per_sm, "blocks on each SM, instead of --blocks"},
		{"threads", OPTION_NUMBER, &runner.threads, "of a block; default 64"},
		{"files", OPTION_NUMBER, &runner.files, "open at a time; default: the library's"},
		{"page", OPTION_TEXT, &runner.page, "a file for out[]"},
		{"split", OPTION_FLAG, &runner.split, "launches a kernel that is no loop"},
		{"pool", OPTION_FLAG, &runner.pool, "no io_uring"},
		{0}};

	workload_parse(&runner.w, argc, argv, "runs an event loop on the GPU", own);
	workload_open(&runner.w, kernels_ptx);
	make_memory(&runner);
	if (runner.split)
		return run_split(&runner);
	const struct weir_loop_options options = {.blocks = blocks_of(&runner),
						  .threads = (uint32_t)runner.threads,
						  .files = (uint32_t)runner.files,
						  .no_uring = runner.pool,
						  .name = runner.kernel};
	if (weir_loop_new(&runner.loop, workload_kernel(&runner.w, runner.kernel), &options))
		workload_fail("weir_loop_new: %s", weir_loop_error(NULL));
	workload_ready(&runner.w);
	return run_loop(&runner);
}
