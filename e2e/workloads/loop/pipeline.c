#include "pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/base.h>

#include "../parallel.h"
#include "../samples.h"
#include "host.h"

extern const char tokens_ptx[], tokens_loop_ptx[], tokens_loop_leaving_ptx[];

#define SHARE   1024u /* documents that a processor reads at once */
#define STREAMS 16u
#define STAGING 32u /* buffers of the loop */
/* Its threads that read: twice the text that the GPU takes. More would take its own thread time on
 * their processors. */
#define READERS 6u

static struct token_job job_of(const struct pipeline *pipeline)
{
	struct token_job job = {.documents = pipeline->documents,
				.dimension = pipeline->dimension,
				.vocabulary_mask = pipeline->vocabulary_mask,
				.file = -1,
				.offsets = pipeline->offsets,
				.vocabulary = pipeline->vocabulary,
				.table = pipeline->table,
				.numbers = pipeline->numbers,
				.tensor = pipeline->tensor};

	if (strlen(pipeline->path) >= sizeof(job.path))
		workload_fail("%s: the path is too long", pipeline->path);
	memcpy(job.path, pipeline->path, strlen(pipeline->path) + 1);
	return job;
}

/* Where the time of a loop went that took @seconds. */
static void tell_reads(const struct token_job *job, double seconds)
{
	fprintf(stderr, "loop: text from %.3f ms to %.3f ms behind its begin, of %.3f ms\n",
		(double)(job->first_read - job->began) / 1e6,
		(double)(job->last_read - job->began) / 1e6, 1e3 * seconds);
}

static double run_loop(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	struct token_job job = job_of(pipeline);
	const struct weir_loop_options options = {.blocks = pipeline->blocks,
						  .threads = TOKENS_THREADS,
						  .callbacks = TOKENS_CALLBACKS,
						  .staging = STAGING,
						  .readers = READERS,
						  .spin_us = HOST_SPIN_US,
						  .name = "tokens"};
	struct weir_loop *loop = host_loop(kernel, &options);
	size_t read = (job.documents / TOKENS_LEAST + 1) * sizeof(int32_t);
	struct stat of;
	double seconds;

	if (stat(pipeline->path, &of) < 0)
		workload_fail("%s: %s", pipeline->path, strerror(errno));
	job.text = host_zeros((size_t)of.st_size + 1);
	job.read = host_zeros(read);
	CU(cuMemsetD8(job.read, 0xff, read));
	CU(cuCtxSynchronize());
	workload_upload(device, &job, sizeof(job));
	seconds = host_loop_run(loop, (void *[]){NULL, &device});
	host_loop_end(loop);
	CU(cuMemcpyDtoH(&job, device, sizeof(job)));
	tell_reads(&job, seconds);
	CU(cuMemFree(job.text));
	CU(cuMemFree(job.read));
	return seconds;
}

/* Without a loop: the file is read into pinned memory and copied to the GPU. */
struct host_run {
	const struct pipeline *pipeline;
	CUfunction kernel;
	CUdeviceptr job, text;
	uint64_t *offsets; /* in the file, of each document and of the end */
	uint8_t *host;
	int fd;
	CUcontext context;
	CUstream streams[STREAMS];
	struct crew *crew;
};

/* Documents from @first on, up to @end. */
static void read_and_embed(const struct host_run *run, uint32_t first, uint32_t end,
			   CUstream stream)
{
	uint64_t from = run->offsets[first], to = run->offsets[end], at = from;
	CUdeviceptr job = run->job, text = run->text;

	while (at < to) {
		ssize_t n = pread(run->fd, run->host + at, to - at, (off_t)at);

		if (n <= 0)
			workload_fail("%s: %s", run->pipeline->path,
				      n ? strerror(errno) : "too short");
		at += (uint64_t)n;
	}
	CU(cuMemcpyHtoDAsync(text + from, run->host + from, to - from, stream));
	CU(cuLaunchKernel(run->kernel, end - first, 1, 1, TOKENS_THREADS, 1, 1, 0, stream,
			  (void *[]){&job, &text, &first}, NULL));
}

static void embed_share(void *context, size_t i)
{
	const struct host_run *run = context;
	uint32_t first = (uint32_t)i * SHARE;

	CU(cuCtxSetCurrent(run->context));
	read_and_embed(run, first, (uint32_t)smaller(first + SHARE, run->pipeline->documents),
		       run->streams[i % STREAMS]);
}

static void host_run_init(struct host_run *run, const struct pipeline *pipeline, CUfunction kernel,
			  CUdeviceptr device)
{
	struct token_job job = job_of(pipeline);
	size_t offsets = (pipeline->documents + 1ull) * sizeof(uint64_t);
	int registers;

	*run = (struct host_run){.pipeline = pipeline, .kernel = kernel, .job = device};
	run->fd = open(pipeline->path, O_RDONLY | O_CLOEXEC);
	if (run->fd < 0)
		workload_fail("%s: %s", pipeline->path, strerror(errno));
	run->offsets = workload_alloc(offsets);
	CU(cuMemcpyDtoH(run->offsets, pipeline->offsets, offsets));
	CU(cuMemHostAlloc((void **)&run->host, run->offsets[pipeline->documents] + 1, 0));
	CU(cuMemAlloc(&run->text, run->offsets[pipeline->documents] + 1));
	CU(cuCtxGetCurrent(&run->context));
	for (size_t i = 0; i < STREAMS; i++)
		CU(cuStreamCreate(&run->streams[i], CU_STREAM_NON_BLOCKING));
	run->crew = crew_new();
	workload_upload(device, &job, sizeof(job));
	/* The driver loads it now, and not at the first launch. */
	CU(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel));
}

static void host_run_deinit(struct host_run *run)
{
	crew_free(run->crew);
	for (size_t i = 0; i < STREAMS; i++)
		CU(cuStreamDestroy(run->streams[i]));
	CU(cuMemFree(run->text));
	CU(cuMemFreeHost(run->host));
	free(run->offsets);
	close(run->fd);
}

static double run_kernels(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device,
			  bool parallel)
{
	struct host_run run;
	uint64_t began;
	double seconds;

	host_run_init(&run, pipeline, kernel, device);
	began = now_ns();
	if (parallel)
		crew_run(run.crew, (pipeline->documents + SHARE - 1) / SHARE, embed_share, &run);
	else
		read_and_embed(&run, 0, pipeline->documents, run.streams[0]);
	CU(cuCtxSynchronize());
	seconds = host_seconds(began);
	host_run_deinit(&run);
	return seconds;
}

static double run_native(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	return run_kernels(pipeline, kernel, device, false);
}

static double run_parallel(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	return run_kernels(pipeline, kernel, device, true);
}

static const struct {
	const char *ptx, *kernel;
	double (*run)(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device);
} ways[] = {[PIPELINE_NATIVE] = {tokens_ptx, "tokens_embed", run_native},
	    [PIPELINE_LOOP] = {tokens_loop_ptx, "tokens_loop", run_loop},
	    [PIPELINE_PARALLEL] = {tokens_ptx, "tokens_embed", run_parallel},
	    [PIPELINE_LEAVING] = {tokens_loop_leaving_ptx, "tokens_loop", run_loop}};

/* What an earlier round has left would look right. */
static void clear_results(const struct pipeline *pipeline)
{
	size_t cells = (size_t)pipeline->documents * TOKENS_ROW;

	CU(cuMemsetD8(pipeline->numbers, 0, cells * sizeof(uint32_t)));
	CU(cuMemsetD8(pipeline->tensor, 0, cells * pipeline->dimension * sizeof(float)));
	CU(cuCtxSynchronize());
}

/* Seconds. */
static double median_round(const struct pipeline *pipeline, enum pipeline_way way,
			   CUfunction kernel, CUdeviceptr device)
{
	struct samples samples = {0};
	double seconds = ways[way].run(pipeline, kernel, device);

	if (!pipeline->rounds)
		return seconds;
	for (uint32_t i = 0; i < pipeline->rounds; i++) {
		clear_results(pipeline);
		samples_add(&samples, ways[way].run(pipeline, kernel, device));
	}
	samples_sort(&samples);
	seconds = samples_quantile(&samples, 0.5);
	samples_deinit(&samples);
	return seconds;
}

double pipeline_run(const struct pipeline *pipeline, enum pipeline_way way)
{
	CUdeviceptr device = host_zeros(sizeof(struct token_job));
	CUfunction kernel;
	CUmodule module;
	double seconds;

	CU(cuModuleLoadData(&module, ways[way].ptx));
	CU(cuModuleGetFunction(&kernel, module, ways[way].kernel));
	seconds = median_round(pipeline, way, kernel, device);
	if (way == PIPELINE_LEAVING)
		seconds = host_leaving_us(module) / 1e6;
	CU(cuModuleUnload(module));
	CU(cuMemFree(device));
	return seconds;
}
