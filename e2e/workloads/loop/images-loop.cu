/* Image matching in an event loop. A lane takes a group of queries, reads it, reads the library in
 * chunks, and writes the best matches. */
#include <weir/loop.cuh>

#include "images.cuh"

#define RETRY_NS 1000000 /* until block 0 has opened the files */
#define WRITE    01101   /* O_WRONLY | O_CREAT | O_TRUNC */

enum { LIBRARY, QUERIES, RESULT, FILES };

static __device__ void next_group(weir::loop &l, image_job *job, image_lane *lane);

/* What came must be what was asked for. */
static __device__ bool is_whole(weir::loop &l, int64_t n, uint64_t wanted)
{
	if (n != static_cast<int64_t>(wanted))
		l.exit(n < 0 ? static_cast<int>(n) : -EIO);
	return n == static_cast<int64_t>(wanted);
}

static __device__ void write_group(weir::loop &l, image_job *job, image_lane *lane, unsigned group, unsigned n)
{
	uint64_t bytes = n * sizeof(image_match), at = group * IMAGE_GROUP * sizeof(image_match);

	weir::file::write(l, job->files[RESULT], lane->best, bytes, at, [=](weir::loop &later, int64_t written) {
		if (is_whole(later, written, bytes))
			next_group(later, job, lane);
	});
}

static __device__ void compare_from(weir::loop &l, image_job *job, image_lane *lane, unsigned group, unsigned n,
				    unsigned first)
{
	unsigned pictures = min(IMAGE_CHUNK, job->library_n - first);
	uint64_t bytes = uint64_t{pictures} * IMAGE_BYTES;

	if (first >= job->library_n) {
		write_group(l, job, lane, group, n);
		return;
	}
	weir::file::read(l, job->files[LIBRARY], lane->pictures, bytes, uint64_t{first} * IMAGE_BYTES,
			 [=](weir::loop &later, int64_t got) {
				 if (!is_whole(later, got, bytes))
					 return;
				 images::compare(lane->queries, n, lane->pictures, pictures, first, lane->best);
				 __syncthreads();
				 compare_from(later, job, lane, group, n, first + IMAGE_CHUNK);
			 });
}

static __device__ void next_group(weir::loop &l, image_job *job, image_lane *lane)
{
	__shared__ unsigned drawn;

	__syncthreads();
	if (threadIdx.x == 0)
		drawn = atomicAdd(&job->ticket, 1u);
	if (threadIdx.x < IMAGE_GROUP)
		lane->best[threadIdx.x] = IMAGE_NONE;
	__syncthreads();
	unsigned group = drawn;

	if (group * IMAGE_GROUP >= job->queries_n)
		return;
	unsigned n = min(IMAGE_GROUP, job->queries_n - group * IMAGE_GROUP);
	uint64_t bytes = uint64_t{n} * IMAGE_BYTES;
	weir::file::read(l, job->files[QUERIES], lane->queries, bytes, uint64_t{group} * IMAGE_GROUP * IMAGE_BYTES,
			 [=](weir::loop &later, int64_t got) {
				 if (is_whole(later, got, bytes))
					 compare_from(later, job, lane, group, n, 0);
			 });
}

static __device__ void begin(weir::loop &l, image_job *job)
{
	unsigned open = *static_cast<volatile uint32_t *>(&job->open);
	image_lane *lanes = reinterpret_cast<image_lane *>(job->lanes_at) + size_t(blockIdx.x) * job->lanes;

	if (__syncthreads_or(open < FILES)) {
		weir::timer::after(l, RETRY_NS, [=](weir::loop &later, int64_t) { begin(later, job); });
		return;
	}
	for (unsigned i = 0; i < job->lanes; i++)
		next_group(l, job, &lanes[i]);
}

/* Block 0 opens one file after the other. */
static __device__ void open_files(weir::loop &l, image_job *job, unsigned i)
{
	const char *path = i == LIBRARY ? job->library : i == QUERIES ? job->queries : job->result;

	if (i == FILES) {
		begin(l, job);
		return;
	}
	weir::file::open(l, path, i == RESULT ? WRITE : 0, 0600, [=](weir::loop &later, int64_t file) {
		if (file < 0) {
			later.exit(static_cast<int>(file));
			return;
		}
		if (threadIdx.x == 0) {
			job->files[i] = file;
			__threadfence();
			*static_cast<volatile uint32_t *>(&job->open) = i + 1;
		}
		__syncthreads();
		open_files(later, job, i + 1);
	});
}

extern "C" __global__ void images_loop(weir::loop_args args, image_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		if (blockIdx.x == 0)
			open_files(l, job, 0);
		else
			begin(l, job);
	});
}
