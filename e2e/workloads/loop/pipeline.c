#include "pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/base.h>

#include "../parallel.h"
#include "host.h"

extern const char tokens_ptx[], tokens_loop_ptx[], tokens_loop_leaving_ptx[];

#define READ (256u << 10) /* bytes that a processor reads at once */

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

static double run_loop(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	struct token_job job = job_of(pipeline);
	const struct weir_loop_options options = {.blocks = pipeline->blocks,
						  .threads = TOKENS_THREADS,
						  .callbacks = TOKENS_CALLBACKS,
						  .name = "tokens"};
	struct weir_loop *loop = host_loop(kernel, &options);
	size_t read = (job.documents / TOKENS_READ + 1) * sizeof(int32_t);
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
	CU(cuMemFree(job.text));
	CU(cuMemFree(job.read));
	return seconds;
}

struct text_file {
	const char *path;
	int fd;
	uint8_t *text;
	size_t size;
};

static void read_range(const struct text_file *file, size_t done, size_t end)
{
	while (done < end) {
		ssize_t n = pread(file->fd, file->text + done, end - done, (off_t)done);

		if (n <= 0)
			workload_fail("%s: %s", file->path, n ? strerror(errno) : "too short");
		done += (size_t)n;
	}
}

static void read_part(void *context, size_t i)
{
	const struct text_file *file = context;

	read_range(file, i * READ, smaller((i + 1) * READ, file->size));
}

static double run_kernel(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device,
			 bool parallel)
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
	struct text_file file = {pipeline->path, fd, host, (size_t)of.st_size};
	began = now_ns();
	if (parallel)
		in_parallel((file.size + READ - 1) / READ, read_part, &file);
	else
		read_range(&file, 0, file.size);
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

static double run_native(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	return run_kernel(pipeline, kernel, device, false);
}

static double run_parallel(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device)
{
	return run_kernel(pipeline, kernel, device, true);
}

static const struct {
	const char *ptx, *kernel;
	double (*run)(const struct pipeline *pipeline, CUfunction kernel, CUdeviceptr device);
} ways[] = {[PIPELINE_NATIVE] = {tokens_ptx, "tokens_embed", run_native},
	    [PIPELINE_LOOP] = {tokens_loop_ptx, "tokens_loop", run_loop},
	    [PIPELINE_PARALLEL] = {tokens_ptx, "tokens_embed", run_parallel},
	    [PIPELINE_LEAVING] = {tokens_loop_leaving_ptx, "tokens_loop", run_loop}};

double pipeline_run(const struct pipeline *pipeline, enum pipeline_way way)
{
	CUdeviceptr device = host_zeros(sizeof(struct token_job));
	CUfunction kernel;
	CUmodule module;
	double seconds;

	CU(cuModuleLoadData(&module, ways[way].ptx));
	CU(cuModuleGetFunction(&kernel, module, ways[way].kernel));
	seconds = ways[way].run(pipeline, kernel, device);
	if (way == PIPELINE_LEAVING)
		seconds = host_leaving_us(module) / 1e6;
	CU(cuModuleUnload(module));
	CU(cuMemFree(device));
	return seconds;
}
