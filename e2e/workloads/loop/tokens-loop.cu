/* Text to tensor in an event loop: a slot reads a document, numbers its tokens, and copies their
 * rows. */
#include <weir/loop.cuh>

#include "tokens.cuh"

static __device__ void next_document(weir::loop &l, token_job *job, int file, uint8_t *text)
{
	__shared__ unsigned drawn;

	__syncthreads();
	if (threadIdx.x == 0)
		drawn = atomicAdd(&job->ticket, 1u);
	__syncthreads();
	unsigned n = drawn;

	if (n >= job->documents)
		return;
	const uint64_t *offsets = reinterpret_cast<const uint64_t *>(job->offsets);
	unsigned size = static_cast<unsigned>(offsets[n + 1] - offsets[n]);
	weir::file::read(l, file, text, size, offsets[n], [=](weir::loop &later, int64_t got) {
		if (got != size) {
			later.exit(got < 0 ? static_cast<int>(got) : -EIO);
			return;
		}
		tokens::embed(*job, n, text, size);
		next_document(later, job, file, text);
	});
}

/* Each block has the file open for itself. */
extern "C" __global__ void tokens_loop(weir::loop_args args, token_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		weir::file::open(l, job->path, 0, 0, [=](weir::loop &later, int64_t file) {
			if (file < 0) {
				later.exit(static_cast<int>(file));
				return;
			}
			for (unsigned i = 0; i < job->slots; i++) {
				size_t slot = size_t(blockIdx.x) * job->slots + i;

				next_document(later, job, static_cast<int>(file),
					      reinterpret_cast<uint8_t *>(job->texts) + slot * TOKENS_DOC);
			}
		});
	});
}
