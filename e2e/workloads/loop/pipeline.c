#include "pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/base.h>

#include "host.h"

extern const char tokens_ptx[], tokens_loop_ptx[];

#define SLOTS 4

static struct token_job job_of(const struct pipeline *pipeline)
{
	struct token_job job = {.documents = pipeline->documents,
				.dimension = pipeline->dimension,
				.vocabulary_mask = pipeline->vocabulary_mask,
				.slots = pipeline->slots ? pipeline->slots : SLOTS,
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

static double run_loop(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	struct token_job job = job_of(pipeline);
	const struct weir_loop_options options = {.blocks = pipeline->blocks,
						  .threads = TOKENS_THREADS,
						  .callbacks = job.slots + 1,
						  .name = "tokens"};
	struct weir_loop *loop = host_loop(kernel, &options);
	struct weir_loop_stats stats;
	double seconds;

	weir_loop_stats(loop, &stats);
	job.texts = host_zeros((size_t)stats.blocks * job.slots * TOKENS_BATCH * TOKENS_DOC);
	workload_upload(device, &job, sizeof(job));
	seconds = host_loop_run(loop, (void *[]){NULL, &device});
	weir_loop_free(loop);
	CU(cuMemFree(job.texts));
	return seconds;
}

static void read_file(int fd, const char *path, uint8_t *text, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = read(fd, text + done, size - done);

		if (n <= 0)
			workload_fail("%s: %s", path, n ? strerror(errno) : "too short");
		done += (size_t)n;
	}
}

static double run_kernel(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	cleanup(closep) int fd = open(pipeline->path, O_RDONLY | O_CLOEXEC);
	struct token_job job = job_of(pipeline);
	uint64_t began;
	struct stat of;
	CUdeviceptr text;
	void *host;
	double seconds;

	if (fd < 0 || fstat(fd, &of) < 0)
		workload_fail("%s: %s", pipeline->path, strerror(errno));
	CU(cuMemHostAlloc(&host, (size_t)of.st_size + 1, 0));
	CU(cuMemAlloc(&text, (size_t)of.st_size + 1));
	began = now_ns();
	read_file(fd, pipeline->path, host, (size_t)of.st_size);
	workload_upload(text, host, (size_t)of.st_size);
	workload_upload(device, &job, sizeof(job));
	CU(cuLaunchKernel(kernel, job.documents, 1, 1, TOKENS_THREADS, 1, 1, 0, NULL,
			  (void *[]){&device, &text}, NULL));
	CU(cuCtxSynchronize());
	seconds = host_seconds(began);
	CU(cuMemFree(text));
	CU(cuMemFreeHost(host));
	return seconds;
}

double pipeline_run(const struct pipeline *pipeline, int by_loop)
{
	CUdeviceptr device = host_zeros(sizeof(struct token_job));
	CUfunction kernel;
	CUmodule module;
	double seconds;

	CU(cuModuleLoadData(&module, by_loop ? tokens_loop_ptx : tokens_ptx));
	CU(cuModuleGetFunction(&kernel, module, by_loop ? "tokens_loop" : "tokens_embed"));
	seconds =
		by_loop ? run_loop(pipeline, kernel, device) : run_kernel(pipeline, kernel, device);
	CU(cuModuleUnload(module));
	CU(cuMemFree(device));
	return seconds;
}
