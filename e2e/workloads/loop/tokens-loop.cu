/* Text to tensor in an event loop: a slot reads a batch of documents, numbers their tokens, and copies
 * their rows. */
#include "block.cuh"
#include "tokens.cuh"

/* A batch in memory: documents @first to @end. */
struct batch {
	token_job *job;
	uint8_t *text;
	int file;
	unsigned first, end;
};

static __device__ uint64_t place(const token_job *job, unsigned document)
{
	return reinterpret_cast<const uint64_t *>(job->offsets)[document];
}

static __device__ void next_batch(weir::loop &l, token_job *job, int file, uint8_t *text);

static __device__ void embed_from(weir::loop &l, batch b, unsigned n)
{
	for (; n < b.end; n++) {
		uint64_t at = place(b.job, n);

		tokens::embed(*b.job, n, b.text + (at - place(b.job, b.first)),
			      static_cast<unsigned>(place(b.job, n + 1) - at));
		if (l.post_task_if_necessary([=](weir::loop &later) { embed_from(later, b, n + 1); }))
			return;
	}
	next_batch(l, b.job, b.file, b.text);
}

static __device__ void next_batch(weir::loop &l, token_job *job, int file, uint8_t *text)
{
	unsigned first = block_add(&job->ticket, TOKENS_BATCH);

	if (first >= job->documents)
		return;
	batch b = {job, text, file, first, min(first + TOKENS_BATCH, job->documents)};
	uint64_t at = place(job, first), size = place(job, b.end) - at;
	weir::file::read(l, file, text, size, at, [=](weir::loop &later, int64_t got) {
		if (is_whole(later, got, size))
			embed_from(later, b, b.first);
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

				next_batch(later, job, static_cast<int>(file),
					   reinterpret_cast<uint8_t *>(job->texts) + slot * TOKENS_BATCH * TOKENS_DOC);
			}
		});
	});
}
