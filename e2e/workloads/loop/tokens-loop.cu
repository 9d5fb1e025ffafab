/* Text to tensor in an event loop. Block 0 opens the file. Each block reads a chunk of documents at a time,
 * and takes a part at a time, of whatever chunk: it numbers the tokens and copies their rows. So all blocks
 * that fit on the GPU compute, and few large reads are under way. */
#include "block.cuh"
#include "tokens.cuh"

static __device__ uint64_t place(const token_job *job, unsigned document)
{
	return reinterpret_cast<const uint64_t *>(job->offsets)[document];
}

static __device__ void next_part(weir::loop &l, token_job *job);

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

/* From step @step of document @n on, up to document @end. */
static __device__ void embed_from(weir::loop &l, token_job *job, unsigned n, unsigned step, unsigned end)
{
	for (; n < end; n++, step = 0)
		for (; step <= TOKENS_ROW / TOKENS_ROWS; step++) {
			take_step(job, n, step);
			if (l.post_task_if_necessary(
				    [=](weir::loop &later) { embed_from(later, job, n, step + 1, end); }))
				return;
		}
	next_part(l, job);
}

/* The documents that are taken TOKENS_PART at a time. The others are taken one by one, so that the blocks end
 * at about the same time. */
static __device__ unsigned in_parts(const token_job *job)
{
	unsigned alone = TOKENS_ALONE * gridDim.x;

	return job->documents > alone ? (job->documents - alone) / TOKENS_PART * TOKENS_PART : 0;
}

/* In a task: it is called from the end of the last part. */
static __device__ void next_part(weir::loop &l, token_job *job)
{
	unsigned part = block_add(&job->parts, 1u), together = in_parts(job), parts = together / TOKENS_PART;
	unsigned first = part < parts ? part * TOKENS_PART : together + part - parts;

	if (first >= job->documents)
		return;
	unsigned end = first + (part < parts ? TOKENS_PART : 1);
	int32_t *read = reinterpret_cast<int32_t *>(job->read) + first / TOKENS_READ;
	l.post_task([=](weir::loop &later) {
		when_known(later, read, [=](weir::loop &known, int32_t) { embed_from(known, job, first, 0, end); });
	});
}

static __device__ void next_read(weir::loop &l, token_job *job)
{
	unsigned chunk = block_add(&job->reads, 1u), first = chunk * TOKENS_READ;

	if (first >= job->documents)
		return;
	uint64_t at = place(job, first), bytes = place(job, min(first + TOKENS_READ, job->documents)) - at;
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
	next_read(l, job);
	next_part(l, job);
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
