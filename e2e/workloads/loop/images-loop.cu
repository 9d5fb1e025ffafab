/* Image matching in an event loop. Block 0 opens the library and reads the queries. Each block reads a
 * chunk of the library at a time, and compares a part at a time, of whatever chunk, with all queries. Who
 * ends last writes the result. */
#include "block.cuh"
#include "images.cuh"

#define WRITE 01101 /* O_WRONLY | O_CREAT | O_TRUNC */

static __device__ void next_part(weir::loop &l, image_job *job);

static __device__ void write_result(weir::loop &l, image_job *job)
{
	weir::file::open(l, job->result, WRITE, 0600, [=](weir::loop &later, int64_t file) {
		if (!is_good(later, file))
			return;
		uint64_t bytes = job->queries_n * sizeof(image_match);

		weir::file::write(later, static_cast<int>(file), reinterpret_cast<void *>(job->best), bytes, 0,
				  [=](weir::loop &last, int64_t written) { is_whole(last, written, bytes); });
	});
}

static __device__ void end_part(weir::loop &l, image_job *job)
{
	unsigned parts = (job->library_n + IMAGE_PART - 1) / IMAGE_PART;

	if (block_add(&job->done, 1u) + 1 == parts)
		write_result(l, job);
	else
		next_part(l, job);
}

/* Compares @n pictures with the queries from @query on. */
static __device__ void compare_from(weir::loop &l, image_job *job, unsigned first, unsigned n, unsigned query)
{
	const uint8_t *queries = reinterpret_cast<const uint8_t *>(job->queries_at);
	const uint8_t *pictures = reinterpret_cast<const uint8_t *>(job->pictures) + size_t(first) * IMAGE_BYTES;
	image_match *best = reinterpret_cast<image_match *>(job->best);

	for (; query < job->queries_n; query += IMAGE_GROUP) {
		images::compare(queries + size_t(query) * IMAGE_BYTES, min(IMAGE_GROUP, job->queries_n - query),
				pictures, n, first, best + query);
		if (l.post_task_if_necessary([=](weir::loop &later) {
			    compare_from(later, job, first, n, query + IMAGE_GROUP);
		    }))
			return;
	}
	end_part(l, job);
}

/* In a task: it is called from the end of the last part. */
static __device__ void next_part(weir::loop &l, image_job *job)
{
	unsigned first = block_add(&job->parts, 1u) * IMAGE_PART;

	if (first >= job->library_n)
		return;
	unsigned n = min(IMAGE_PART, job->library_n - first);
	int32_t *read = reinterpret_cast<int32_t *>(job->read) + first / IMAGE_READ;
	l.post_task([=](weir::loop &later) {
		when_known(later, read, [=](weir::loop &there, int32_t) {
			when_known(there, &job->ready,
				   [=](weir::loop &known, int32_t) { compare_from(known, job, first, n, 0); });
		});
	});
}

static __device__ void next_read(weir::loop &l, image_job *job)
{
	unsigned chunk = block_add(&job->reads, 1u), first = chunk * IMAGE_READ;

	if (first >= job->library_n)
		return;
	uint64_t at = uint64_t{first} * IMAGE_BYTES,
		 bytes = uint64_t{min(IMAGE_READ, job->library_n - first)} * IMAGE_BYTES;
	weir::file::read(l, job->file, reinterpret_cast<uint8_t *>(job->pictures) + at, bytes, at,
			 [=](weir::loop &later, int64_t got) {
				 if (!is_whole(later, got, bytes))
					 return;
				 make_known(reinterpret_cast<int32_t *>(job->read) + chunk, 1);
				 next_read(later, job);
			 });
}

static __device__ void begin(weir::loop &l, image_job *job)
{
	next_read(l, job);
	next_part(l, job);
}

static __device__ void open_library(weir::loop &l, image_job *job)
{
	weir::file::open(l, job->library, 0, 0, [=](weir::loop &later, int64_t file) {
		if (!is_good(later, file))
			return;
		make_known(&job->file, static_cast<int32_t>(file));
		begin(later, job);
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
	});
}

extern "C" __global__ void __launch_bounds__(IMAGE_THREADS, 6) images_loop(weir::loop_args args, image_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		if (blockIdx.x != 0) {
			when_known(l, &job->file, [=](weir::loop &later, int32_t) { begin(later, job); });
			return;
		}
		open_library(l, job);
		read_queries(l, job);
	});
}
