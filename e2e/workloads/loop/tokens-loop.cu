/* Text to tensor in an event loop: a slot reads a document, numbers its tokens, and copies their
 * rows. */
#include "block.cuh"
#include "tokens.cuh"

static __device__ void next_document(weir::loop &l, token_job *job, int file, uint8_t *text)
{
	unsigned n = block_add(&job->ticket, 1u);

	if (n >= job->documents)
		return;
	const uint64_t *offsets = reinterpret_cast<const uint64_t *>(job->offsets);
	unsigned size = static_cast<unsigned>(offsets[n + 1] - offsets[n]);
	weir::file::read(l, file, text, size, offsets[n], [=](weir::loop &later, int64_t got) {
		if (!is_whole(later, got, size))
			return;
		tokens::embed(*job, n, text, size);
		next_document(later, job, file, text);
	});
}

/* Each block has the file open for itself. */
extern "C" __global__ void __launch_bounds__(TOKENS_THREADS, 16) tokens_loop(weir::loop_args args, token_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		weir::file::open(l, job->path, 0, 0, [=](weir::loop &later, int64_t file) {
			for (unsigned i = 0; is_good(later, file) && i < job->slots; i++) {
				size_t slot = size_t(blockIdx.x) * job->slots + i;

				next_document(later, job, static_cast<int>(file),
					      reinterpret_cast<uint8_t *>(job->texts) + slot * TOKENS_DOC);
			}
		});
	});
}
