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
#define WARPS       (TOKENS_THREADS / 32)
#define STEPS       (TOKENS_ROW / TOKENS_ROWS) /* in which a document's rows are copied; step 0 numbers it */
#define AHEAD_ROWS  (TOKENS_ROWS / WARPS)      /* of a warp in each */
#define AHEAD_QUADS 2u                         /* of a row that a thread reads ahead */

static __device__ uint64_t now_ns()
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

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

/* What a thread has of a step's rows before they are copied. While they come, the block looks whether it is to
 * leave, and waits for its other warps. */
struct ahead {
	float4 quads[AHEAD_ROWS][AHEAD_QUADS];
};

static __device__ tokens::rows rows_of(unsigned n, unsigned step)
{
	return tokens::rows_of(here().job, n, (step - 1) * TOKENS_ROWS, TOKENS_ROWS);
}

/* Reads ahead for step @step of document @n, if there is one, and copies what of its rows is not read ahead. Behind
 * the end of a row it reads the row's last quad again: with a branch in place of that, the registers would also have
 * to keep what was there before. */
static __device__ void fetch(ahead &ahead, unsigned n, unsigned step)
{
	if (step > STEPS)
		return;
	tokens::rows rows = rows_of(n, step);

#pragma unroll
	for (unsigned r = 0; r < AHEAD_ROWS; r++) {
		unsigned i = threadIdx.x / 32 + r * WARPS;
		const float4 *from = rows.table + size_t(rows.numbers[i]) * rows.quads;
#pragma unroll
		for (unsigned k = 0; k < AHEAD_QUADS; k++) {
			unsigned q = threadIdx.x % 32 + 32 * k;
			ahead.quads[r][k] = __ldg(from + min(q, rows.quads - 1));
		}
		if (rows.quads > 32 * AHEAD_QUADS)
			tokens::copy_row(rows, i, threadIdx.x % 32 + 32 * AHEAD_QUADS);
	}
}

/* Copies the rows of step @step, for which fetch() was called. The block may be at another document's numbers. */
static __device__ void store(const ahead &ahead, unsigned n, unsigned step)
{
	tokens::rows rows = rows_of(n, step);

#pragma unroll
	for (unsigned r = 0; r < AHEAD_ROWS; r++) {
		unsigned i = threadIdx.x / 32 + r * WARPS;
#pragma unroll
		for (unsigned k = 0; k < AHEAD_QUADS; k++) {
			unsigned q = threadIdx.x % 32 + 32 * k;
			if (q < rows.quads)
				__stcs(rows.tensor + size_t(i) * rows.quads + q, ahead.quads[r][k]);
		}
	}
}

/* Copies the rows of step @step. In the first of these steps two threads look where document @next lies,
 * and then the first warp has its text brought into the L2 cache, may it be there already or not. */
static __device__ void embed(ahead &ahead, unsigned n, unsigned step, unsigned next)
{
	bool places = step == 1 && threadIdx.x < 2 && next < here().job.documents;
	uint64_t place = places ? offsets()[next + threadIdx.x] : 0;

	if (step == 2 && here().placed == next && threadIdx.x < 32) {
		uint64_t at = here().place[0] + 128 * threadIdx.x;
		if (at < here().place[1])
			asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(text() + at)));
	}
	store(ahead, n, step);
	fetch(ahead, n, step + 1);
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

/* The word that says that chunk @chunk is there. */
static __device__ int32_t *read_of(const token_job *job, unsigned chunk)
{
	return reinterpret_cast<int32_t *>(job->read) + chunk;
}

/* True: document @n is there, as are all before number @known. The first warp asks for several chunks at a
 * time: it takes a microsecond, and empties the L1 cache. */
static __device__ bool is_there(const token_job *job, unsigned n, unsigned &known)
{
	__shared__ unsigned there;

	if (n < known)
		return true;
	if (threadIdx.x < 32) {
		unsigned chunk = chunk_of(n), last = chunk_of(here().job.documents - 1);
		unsigned missing = __ballot_sync(~0u, acquire(read_of(job, min(chunk + threadIdx.x, last))) < 0);

		there = first_of(chunk + (missing ? __ffs(missing) - 1 : 32));
	}
	__syncthreads();
	known = there;
	return n < known;
}

/* From step @step of document @n on, and then other documents, until one is not there or the block is to
 * leave. While the last rows of a document come, the next one is numbered, if it is there. */
static __device__ void embed_from(weir::loop &l, token_job *job, unsigned n, unsigned step, unsigned next,
				  unsigned known)
{
	ahead ahead;

	take_job(job);
	if (step > 0) {
		tokens::recall(here().job, n);
		fetch(ahead, n, step);
		__syncthreads(); /* the next document's numbers may follow */
	}
	for (; n < here().job.documents; n = next, step = 0) {
		if (step == 0 && !is_there(job, n, known)) {
			l.post_task([=](weir::loop &later) {
				when_known(later, read_of(job, chunk_of(n)), [=](weir::loop &ready, int32_t) {
					embed_from(ready, job, n, 0, 0, 0);
				});
			});
			return;
		}
		for (; step <= STEPS; step++) {
			if (step == 0) {
				next = number(job, n);
				fetch(ahead, n, 1);
			} else if (step == STEPS && next < here().job.documents && is_there(job, next, known)) {
				unsigned after = number(job, next);

				store(ahead, n, STEPS);
				fetch(ahead, next, 1);
				n = next, next = after, step = 0;
			} else {
				embed(ahead, n, step, next);
			}
			if (l.post_task_if_necessary(
				    [=](weir::loop &later) { embed_from(later, job, n, step + 1, next, known); }))
				return;
		}
	}
}

static __device__ void compute(weir::loop &l, token_job *job)
{
	unsigned n = block_add(&job->drawn, 1u);

	l.post_task([=](weir::loop &later) { embed_from(later, job, n, 0, 0, 0); });
}

/* For pipeline.c, which tells where the time went. */
static __device__ void note_read(token_job *job)
{
	if (threadIdx.x != 0)
		return;
	uint64_t now = now_ns();
	atomicCAS(&job->first_read, 0ull, now);
	atomicMax(&job->last_read, now);
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
				 note_read(job);
				 make_known(read_of(job, chunk), 1);
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

/* 64 registers, so that what is read ahead is not spilled. More blocks on an SM would have fewer. */
extern "C" __global__ void __launch_bounds__(TOKENS_THREADS, 8) tokens_loop(weir::loop_args args, token_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		if (blockIdx.x != 0) {
			when_known(l, &job->file, [=](weir::loop &later, int32_t) { begin(later, job); });
			return;
		}
		if (threadIdx.x == 0)
			job->began = now_ns();
		weir::file::open(l, job->path, 0, 0, [=](weir::loop &later, int64_t file) {
			if (!is_good(later, file))
				return;
			make_known(&job->file, static_cast<int32_t>(file));
			begin(later, job);
		});
	});
}
