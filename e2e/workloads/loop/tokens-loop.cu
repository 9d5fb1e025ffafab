/* Text to tensor in an event loop. Block 0 opens the file. The first blocks read, a chunk of documents at a
 * time. The others take a document at a time, of whatever chunk: they number the tokens and copy their
 * rows. */
#include "block.cuh"
#include "tokens.cuh"

static __device__ uint64_t place(const token_job *job, unsigned document)
{
	return reinterpret_cast<const uint64_t *>(job->offsets)[document];
}

/* Step 0 of a document: its numbers. Each other step: the rows of some of them. */
static __device__ void take_step(const token_job *job, unsigned n, unsigned step)
{
	if (step) {
		tokens::embed(*job, n, (step - 1) * TOKENS_ROWS, TOKENS_ROWS);
		return;
	}
	uint64_t at = place(job, n);
	tokens::number(*job, reinterpret_cast<const uint8_t *>(job->text) + at, place(job, n + 1) - at,
		       tokens::numbers_of(*job, n));
}

/* The chunk of document @n. */
static __device__ unsigned chunk_of(unsigned n)
{
	unsigned size = TOKENS_LEAST, chunk = 0;

	for (; size < TOKENS_MOST && n >= TOKENS_WAVE * size; size *= 2, chunk += TOKENS_WAVE)
		n -= TOKENS_WAVE * size;
	return chunk + n / size;
}

/* The first document of a chunk. */
static __device__ unsigned first_of(unsigned chunk)
{
	unsigned size = TOKENS_LEAST, n = 0;

	for (; size < TOKENS_MOST && chunk >= TOKENS_WAVE; size *= 2, chunk -= TOKENS_WAVE)
		n += TOKENS_WAVE * size;
	return n + chunk * size;
}

/* The word that says that the chunk of document @n is there. */
static __device__ int32_t *read_of(const token_job *job, unsigned n)
{
	return reinterpret_cast<int32_t *>(job->read) + chunk_of(n);
}

/* From step @step of document @n on, and then other documents, until one is not there or the block is to
 * leave. The @next one is drawn before a document is numbered: that takes a microsecond, which hides so. */
static __device__ void embed_from(weir::loop &l, token_job *job, unsigned n, unsigned step, unsigned next)
{
	__shared__ unsigned drawn;

	for (; n < job->documents; n = next, step = 0) {
		if (step == 0 && !is_known(read_of(job, n))) {
			l.post_task([=](weir::loop &later) {
				when_known(later, read_of(job, n),
					   [=](weir::loop &known, int32_t) { embed_from(known, job, n, 0, 0); });
			});
			return;
		}
		for (; step <= TOKENS_ROW / TOKENS_ROWS; step++) {
			if (step == 0 && threadIdx.x == 0)
				drawn = atomicAdd(&job->drawn, 1u);
			take_step(job, n, step);
			if (step == 0)
				next = drawn;
			if (l.post_task_if_necessary(
				    [=](weir::loop &later) { embed_from(later, job, n, step + 1, next); }))
				return;
		}
	}
}

static __device__ void compute(weir::loop &l, token_job *job)
{
	unsigned n = block_add(&job->drawn, 1u);

	l.post_task([=](weir::loop &later) { embed_from(later, job, n, 0, 0); });
}

/* A block that reads does nothing else, so it sees an answer at once. When all is read, it computes, too. */
static __device__ void next_read(weir::loop &l, token_job *job)
{
	unsigned chunk = block_add(&job->reads, 1u), first = first_of(chunk);

	if (first >= job->documents) {
		compute(l, job);
		return;
	}
	uint64_t at = place(job, first), bytes = place(job, min(first_of(chunk + 1), job->documents)) - at;
	weir::file::read(l, job->file, reinterpret_cast<uint8_t *>(job->text) + at, bytes, at,
			 [=](weir::loop &later, int64_t got) {
				 if (!is_whole(later, got, bytes))
					 return;
				 make_known(reinterpret_cast<int32_t *>(job->read) + chunk, 1);
				 next_read(later, job);
			 });
}

static __device__ void begin(weir::loop &l, token_job *job)
{
	if (blockIdx.x <= min(TOKENS_READERS - 1, gridDim.x / 8))
		next_read(l, job);
	else
		compute(l, job);
}

extern "C" __global__ void __launch_bounds__(TOKENS_THREADS, 12) tokens_loop(weir::loop_args args, token_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		if (blockIdx.x != 0) {
			when_known(l, &job->file, [=](weir::loop &later, int32_t) { begin(later, job); });
			return;
		}
		weir::file::open(l, job->path, 0, 0, [=](weir::loop &later, int64_t file) {
			if (!is_good(later, file))
				return;
			make_known(&job->file, static_cast<int32_t>(file));
			begin(later, job);
		});
	});
}
