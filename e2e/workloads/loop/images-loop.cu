/* Image matching in an event loop. Block 0 opens the library and reads the queries. Each slot takes a
 * chunk of the library, reads it, and compares it with all queries. Who ends last writes the result. */
#include "block.cuh"
#include "images.cuh"

#define WRITE 01101 /* O_WRONLY | O_CREAT | O_TRUNC */

static __device__ void next_chunk(weir::loop &l, image_job *job, uint8_t *pictures);

static __device__ unsigned chunks_of(const image_job *job)
{
	return (job->library_n + IMAGE_READ - 1) / IMAGE_READ;
}

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

static __device__ void end_chunk(weir::loop &l, image_job *job, uint8_t *pictures)
{
	if (block_add(&job->done, 1u) + 1 == chunks_of(job))
		write_result(l, job);
	else
		next_chunk(l, job, pictures);
}

/* Compares @n pictures with the queries from @query on. */
static __device__ void compare_from(weir::loop &l, image_job *job, uint8_t *pictures, unsigned first, unsigned n,
				    unsigned query)
{
	const uint8_t *queries = reinterpret_cast<const uint8_t *>(job->queries_at);
	image_match *best = reinterpret_cast<image_match *>(job->best);

	for (; query < job->queries_n; query += IMAGE_GROUP) {
		images::compare(queries + size_t(query) * IMAGE_BYTES, min(IMAGE_GROUP, job->queries_n - query),
				pictures, n, first, best + query);
		if (l.post_task_if_necessary([=](weir::loop &later) {
			    compare_from(later, job, pictures, first, n, query + IMAGE_GROUP);
		    }))
			return;
	}
	end_chunk(l, job, pictures);
}

static __device__ void next_chunk(weir::loop &l, image_job *job, uint8_t *pictures)
{
	unsigned first = block_add(&job->ticket, 1u) * IMAGE_READ;

	if (first >= job->library_n)
		return;
	unsigned n = min(IMAGE_READ, job->library_n - first);
	uint64_t bytes = uint64_t{n} * IMAGE_BYTES;
	weir::file::read(l, job->file, pictures, bytes, uint64_t{first} * IMAGE_BYTES,
			 [=](weir::loop &later, int64_t got) {
				 if (!is_whole(later, got, bytes))
					 return;
				 when_known(later, &job->ready, [=](weir::loop &known, int32_t) {
					 compare_from(known, job, pictures, first, n, 0);
				 });
			 });
}

static __device__ void begin(weir::loop &l, image_job *job)
{
	uint8_t *chunks = reinterpret_cast<uint8_t *>(job->chunks);

	for (unsigned i = 0; i < job->slots; i++)
		next_chunk(l, job, chunks + (size_t(blockIdx.x) * job->slots + i) * IMAGE_READ * IMAGE_BYTES);
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
