/* Text to tensor in an event loop. Block 0 opens the file. The first blocks read, a chunk of documents at a
 * time. The others take a document at a time, of whatever chunk: they number the tokens and copy their
 * rows. */
#include "block.cuh"
#include "tokens.cuh"

/* What a block has at hand of the job, until it leaves: the job itself, as another block's answer empties
 * the L1 cache; and of the document that it takes next its number and where it begins and ends. */
struct at_hand {
	token_job job;
	unsigned next, placed; /* which one it is, and whose @place that is */
	uint64_t place[2];
};

static __device__ at_hand &here()
{
	__shared__ at_hand here;

	return here;
}

#define NO_DOCUMENT ~0u

/* When the block has come to the GPU, or has waited: copies the job, and knows of no next document. */
static __device__ void take_job(const token_job *job)
{
	const unsigned *from = reinterpret_cast<const unsigned *>(job);
	unsigned *to = reinterpret_cast<unsigned *>(&here().job);

	__syncthreads();
	for (unsigned i = threadIdx.x; i < sizeof(*job) / sizeof(*from); i += TOKENS_THREADS)
		to[i] = from[i];
	here().placed = NO_DOCUMENT;
	__syncthreads();
}

static __device__ const uint64_t *offsets()
{
	return reinterpret_cast<const uint64_t *>(here().job.offsets);
}

static __device__ uint8_t *text()
{
	return reinterpret_cast<uint8_t *>(here().job.text);
}

/* Numbers document @n. Returns the next one, which is drawn meanwhile: that takes a microsecond. */
static __device__ unsigned number(token_job *job, unsigned n)
{
	const uint64_t *place = here().placed == n ? here().place : offsets() + n;
	uint64_t at = place[0], bytes = place[1] - at;
	unsigned drawn = threadIdx.x == 0 ? atomicAdd(&job->drawn, 1u) : 0;

	tokens::number(here().job, n, text() + at, bytes);
	if (threadIdx.x == 0)
		here().next = drawn;
	__syncthreads();
	return here().next;
}

/* Copies the rows of step @step. In the first of these steps two threads look where document @next lies,
 * and then the first warp has its text brought into the L2 cache, may it be there already or not. */
static __device__ void embed(unsigned n, unsigned step, unsigned next)
{
	bool places = step == 1 && threadIdx.x < 2 && next < here().job.documents;
	uint64_t place = places ? offsets()[next + threadIdx.x] : 0;

	if (step == 2 && here().placed == next && threadIdx.x < 32) {
		uint64_t at = here().place[0] + 128 * threadIdx.x;
		if (at < here().place[1])
			asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(text() + at)));
	}
	tokens::embed(here().job, n, (step - 1) * TOKENS_ROWS, TOKENS_ROWS);
	if (places) {
		here().place[threadIdx.x] = place;
		here().placed = next;
	}
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

/* True: the chunk of document @n is there. @all: whether all are; then nothing need be asked, which takes a
 * microsecond and empties the L1 cache. */
static __device__ bool is_there(token_job *job, unsigned n, bool &all)
{
	if (all)
		return true;
	bool is_last = threadIdx.x != 0 ||
		       *static_cast<volatile unsigned *>(&job->there) > chunk_of(here().job.documents - 1);
	if (!is_known(read_of(job, n)))
		return false;
	all = __syncthreads_and(is_last);
	if (all)
		__threadfence();
	return true;
}

/* From step @step of document @n on, and then other documents, until one is not there or the block is to
 * leave. */
static __device__ void embed_from(weir::loop &l, token_job *job, unsigned n, unsigned step, unsigned next, bool all)
{
	take_job(job);
	if (step > 0)
		tokens::recall(here().job, n);
	for (; n < here().job.documents; n = next, step = 0) {
		if (step == 0 && !is_there(job, n, all)) {
			l.post_task([=](weir::loop &later) {
				when_known(later, read_of(job, n), [=](weir::loop &known, int32_t) {
					embed_from(known, job, n, 0, 0, false);
				});
			});
			return;
		}
		for (; step <= TOKENS_ROW / TOKENS_ROWS; step++) {
			if (step == 0)
				next = number(job, n);
			else
				embed(n, step, next);
			if (l.post_task_if_necessary(
				    [=](weir::loop &later) { embed_from(later, job, n, step + 1, next, all); }))
				return;
		}
	}
}

static __device__ void compute(weir::loop &l, token_job *job)
{
	unsigned n = block_add(&job->drawn, 1u);

	l.post_task([=](weir::loop &later) { embed_from(later, job, n, 0, 0, false); });
}

/* A block that reads does nothing else, so it sees an answer at once. When all is read, it computes, too. */
static __device__ void next_read(weir::loop &l, token_job *job)
{
	unsigned chunk = block_add(&job->reads, 1u), first = first_of(chunk);

	if (first >= job->documents) {
		compute(l, job);
		return;
	}
	const uint64_t *offsets = reinterpret_cast<const uint64_t *>(job->offsets);
	uint64_t at = offsets[first], bytes = offsets[min(first_of(chunk + 1), job->documents)] - at;
	weir::file::read(l, job->file, reinterpret_cast<uint8_t *>(job->text) + at, bytes, at,
			 [=](weir::loop &later, int64_t got) {
				 if (!is_whole(later, got, bytes))
					 return;
				 make_known(reinterpret_cast<int32_t *>(job->read) + chunk, 1);
				 block_add(&job->there, 1u);
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

/* With more blocks on an SM they would have 40 registers each, and what is spilled costs more than they gain. */
extern "C" __global__ void __launch_bounds__(TOKENS_THREADS, 10) tokens_loop(weir::loop_args args, token_job *job)
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
