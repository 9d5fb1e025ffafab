/* Reads a file into device memory: requests of one size, each drawn by whoever is free. */
#include "block.cuh"
#include "file-read.h"

static __device__ void next_chunk(weir::loop &l, read_job *job, int file)
{
	uint64_t n = block_add(&job->ticket, 1ull), at = n * job->chunk % job->bytes, left = job->bytes - at;
	uint64_t size = left < job->chunk ? left : job->chunk;

	if (n >= job->total)
		return;
	weir::file::read(l, file, reinterpret_cast<uint8_t *>(job->to) + at, size, at,
			 [=](weir::loop &later, int64_t got) {
				 if (is_whole(later, got, size))
					 next_chunk(later, job, file);
			 });
}

/* Each block has the file open for itself. */
extern "C" __global__ void file_read(weir::loop_args args, read_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		weir::file::open(l, job->path, job->flags, 0, [=](weir::loop &later, int64_t file) {
			for (unsigned i = 0; is_good(later, file) && i < job->slots; i++)
				next_chunk(later, job, static_cast<int>(file));
		});
	});
}
