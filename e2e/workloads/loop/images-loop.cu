/* Image matching in an event loop. Block 0 asks for the queries, which all need first, and then opens the
 * library and the result. The blocks share the reads of the library, and then parts: a chunk of the library
 * and a range of the queries. A part is much shorter than what a block does in all, so parts of what is
 * there are compared while the rest of the library is read, and all blocks end at about the same time. Who
 * ends last writes the result. */
#include "block.cuh"
#include "images.cuh"

#define WRITE 01101 /* O_WRONLY | O_CREAT | O_TRUNC */

static __device__ void next_part(weir::loop &l, image_job *job);

static __device__ void write_result(weir::loop &l, image_job *job)
{
	when_known(l, &job->out, [=](weir::loop &later, int32_t file) {
		uint64_t bytes = job->queries_n * sizeof(image_match);

		weir::file::write(later, file, reinterpret_cast<void *>(job->best), bytes, 0,
				  [=](weir::loop &last, int64_t written) { is_whole(last, written, bytes); });
	});
}

static __device__ unsigned ranges(const image_job *job)
{
	return (job->queries_n + IMAGE_RANGE - 1) / IMAGE_RANGE;
}

static __device__ unsigned parts(const image_job *job)
{
	return (job->library_n + IMAGE_CHUNK - 1) / IMAGE_CHUNK * ranges(job);
}

static __device__ void end_part(weir::loop &l, image_job *job)
{
	if (block_add(&job->done, 1u) + 1 == parts(job))
		write_result(l, job);
	else
		next_part(l, job);
}

/* Compares the chunk that begins with picture @first with the queries from @query to @end. */
static __device__ void compare_from(weir::loop &l, image_job *job, unsigned first, unsigned query, unsigned end)
{
	const uint8_t *queries = reinterpret_cast<const uint8_t *>(job->queries_at);
	const uint8_t *pictures = reinterpret_cast<const uint8_t *>(job->pictures) + size_t(first) * IMAGE_BYTES;
	image_match *best = reinterpret_cast<image_match *>(job->best);

	for (; query < end; query += IMAGE_GROUP) {
		images::compare(queries + size_t(query) * IMAGE_BYTES, min(IMAGE_GROUP, end - query), pictures,
				min(IMAGE_CHUNK, job->library_n - first), first, best + query);
		if (l.post_task_if_necessary([=](weir::loop &later) {
			    compare_from(later, job, first, query + IMAGE_GROUP, end);
		    }))
			return;
	}
	end_part(l, job);
}

/* In a task: it is called from the end of the last part. */
static __device__ void next_part(weir::loop &l, image_job *job)
{
	unsigned part = block_add(&job->parts, 1u);

	if (part >= parts(job))
		return;
	unsigned first = part / ranges(job) * IMAGE_CHUNK, query = part % ranges(job) * IMAGE_RANGE;
	unsigned end = min(query + IMAGE_RANGE, job->queries_n);
	int32_t *read = reinterpret_cast<int32_t *>(job->read) + first / IMAGE_READ;
	l.post_task([=](weir::loop &later) {
		when_known(later, read, [=](weir::loop &there, int32_t) {
			when_known(there, &job->ready, [=](weir::loop &known, int32_t) {
				compare_from(known, job, first, query, end);
			});
		});
	});
}

static __device__ void next_read(weir::loop &l, image_job *job)
{
	unsigned number = block_add(&job->reads, 1u), first = number * IMAGE_READ;

	if (first >= job->library_n)
		return;
	uint64_t at = uint64_t{first} * IMAGE_BYTES,
		 bytes = uint64_t{min(IMAGE_READ, job->library_n - first)} * IMAGE_BYTES;
	weir::file::read(l, job->file, reinterpret_cast<uint8_t *>(job->pictures) + at, bytes, at,
			 [=](weir::loop &later, int64_t got) {
				 if (!is_whole(later, got, bytes))
					 return;
				 make_known(reinterpret_cast<int32_t *>(job->read) + number, 1);
				 next_read(later, job);
			 });
}

static __device__ void begin(weir::loop &l, image_job *job)
{
	next_read(l, job);
	next_part(l, job);
}

static __device__ void open_files(weir::loop &l, image_job *job)
{
	weir::file::open(l, job->library, 0, 0, [=](weir::loop &later, int64_t file) {
		if (!is_good(later, file))
			return;
		make_known(&job->file, static_cast<int32_t>(file));
		begin(later, job);
	});
	weir::file::open(l, job->result, WRITE, 0600, [=](weir::loop &later, int64_t file) {
		if (is_good(later, file))
			make_known(&job->out, static_cast<int32_t>(file));
	});
}

static __device__ void read_queries(weir::loop &l, image_job *job)
{
	weir::file::open(l, job->queries, 0, 0, [=](weir::loop &later, int64_t file) {
		if (!is_good(later, file))
			return;
		uint64_t bytes = uint64_t{job->queries_n} * IMAGE_BYTES;

		weir::file::read(later, static_cast<int>(file), reinterpret_cast<void *>(job->queries_at), bytes, 0,
				 [=](weir::loop &last, int64_t got) {
					 if (is_whole(last, got, bytes))
						 make_known(&job->ready, 1);
				 });
		open_files(later, job);
	});
}

/* With more than 3 blocks on an SM registers would be spilled in compare(). */
extern "C" __global__ void __launch_bounds__(IMAGE_THREADS, 3) images_loop(weir::loop_args args, image_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		if (blockIdx.x == 0)
			read_queries(l, job);
		else
			when_known(l, &job->file, [=](weir::loop &later, int32_t) { begin(later, job); });
	});
}
