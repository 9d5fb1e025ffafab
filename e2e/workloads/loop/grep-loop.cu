/* grep in an event loop: the blocks open and read files, search, and write the matches. A slot is a
 * file under way: it reads a chunk, searches it, writes what it found, and reads the next. */
#include "block.cuh"
#include "grep.cuh"

#define WRITE 01102   /* O_RDWR | O_CREAT | O_TRUNC */

static __device__ void next_file(weir::loop &l, grep_job *job, grep_slot *slot);

static __device__ void read_chunk(weir::loop &l, grep_job *job, grep_slot *slot, int file, unsigned number,
				  unsigned offset);

/* The next chunk begins where a word that crosses the end of this one may begin. */
static __device__ void after_chunk(weir::loop &l, grep_job *job, grep_slot *slot, int file, unsigned number,
				   unsigned offset, unsigned size)
{
	if (size == GREP_CHUNK) {
		read_chunk(l, job, slot, file, number, offset + size - (job->length - 1));
		return;
	}
	weir::file::close(l, file, [=](weir::loop &later, int64_t) { next_file(later, job, slot); });
}

static __device__ void search_chunk(weir::loop &l, grep_job *job, grep_slot *slot, int file, unsigned number,
				    unsigned offset, unsigned size)
{
	if (threadIdx.x == 0)
		slot->found = 0;
	__syncthreads();
	grep::search(slot->chunk, size, job->word, job->length, {number, offset}, slot->matches, &slot->found,
		     GREP_MATCHES, threadIdx.x, blockDim.x);
	__syncthreads();
	unsigned found = slot->found;

	if (found > GREP_MATCHES) {
		l.exit(-E2BIG);
		return;
	}
	if (!found) {
		after_chunk(l, job, slot, file, number, offset, size);
		return;
	}
	uint64_t at = sizeof(grep_match) * uint64_t{block_add(&job->matches, found)}, bytes = found * sizeof(grep_match);
	weir::file::write(l, job->output, slot->matches, bytes, at, [=](weir::loop &later, int64_t n) {
		if (is_whole(later, n, bytes))
			after_chunk(later, job, slot, file, number, offset, size);
	});
}

static __device__ void read_chunk(weir::loop &l, grep_job *job, grep_slot *slot, int file, unsigned number,
				  unsigned offset)
{
	weir::file::read(l, file, slot->chunk, GREP_CHUNK, offset, [=](weir::loop &later, int64_t n) {
		if (is_good(later, n))
			search_chunk(later, job, slot, file, number, offset, n);
	});
}

static __device__ void next_file(weir::loop &l, grep_job *job, grep_slot *slot)
{
	unsigned number = block_add(&job->ticket, 1u);

	if (number >= job->files)
		return;
	const char *path = reinterpret_cast<const char *>(job->paths) + size_t(number) * GREP_PATH;
	weir::file::open(l, path, 0, 0, [=](weir::loop &later, int64_t file) {
		if (is_good(later, file))
			read_chunk(later, job, slot, file, number, 0);
	});
}

static __device__ void begin(weir::loop &l, grep_job *job)
{
	grep_slot *slots = reinterpret_cast<grep_slot *>(job->slots_at) + size_t(blockIdx.x) * job->slots;

	for (unsigned i = 0; i < job->slots; i++)
		next_file(l, job, &slots[i]);
}

extern "C" __global__ void __launch_bounds__(GREP_THREADS, 8) grep_loop(weir::loop_args args, grep_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		if (blockIdx.x != 0) {
			when_known(l, &job->output, [=](weir::loop &later, int32_t) { begin(later, job); });
			return;
		}
		weir::file::open(l, job->result, WRITE, 0600, [=](weir::loop &later, int64_t output) {
			if (!is_good(later, output))
				return;
			make_known(&job->output, static_cast<int32_t>(output));
			begin(later, job);
		});
	});
}
