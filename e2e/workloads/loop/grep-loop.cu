/* grep in an event loop: the blocks open and read files and search. A slot is a file under way: it reads
 * a chunk, searches it in pieces, and reads the next. The matches stay on the device; who ends last writes them. */
#include "block.cuh"
#include "grep.cuh"

#define WRITE 01102   /* O_RDWR | O_CREAT | O_TRUNC */

/* A chunk of a file. */
struct chunk_of {
	grep_match place; /* the file's ticket, and where in it the chunk is */
	int file;         /* its handle */
	unsigned size;
};

static __device__ void next_file(weir::loop &l, grep_job *job, uint8_t *chunk);
static __device__ void read_chunk(weir::loop &l, grep_job *job, uint8_t *chunk, int file, grep_match place);

static __device__ void write_matches(weir::loop &l, grep_job *job)
{
	if (job->found > job->most) {
		l.exit(-E2BIG);
		return;
	}
	weir::file::open(l, job->result, WRITE, 0600, [=](weir::loop &later, int64_t output) {
		if (!is_good(later, output))
			return;
		uint64_t bytes = uint64_t{job->found} * sizeof(grep_match);

		weir::file::write(later, static_cast<int>(output), reinterpret_cast<void *>(job->matches), bytes, 0,
				  [=](weir::loop &last, int64_t n) { is_whole(last, n, bytes); });
	});
}

/* The slot takes its next file when this one is closed, so it never has more than one request under way. */
static __device__ void end_file(weir::loop &l, grep_job *job, uint8_t *chunk, int file)
{
	bool is_last = block_add(&job->done, 1u) + 1 == job->files * job->passes;

	weir::file::close(l, file, [=](weir::loop &later, int64_t) { next_file(later, job, chunk); });
	if (is_last)
		write_matches(l, job);
}

/* The next chunk begins where a word that crosses the end of this one may begin. */
static __device__ void end_chunk(weir::loop &l, grep_job *job, uint8_t *chunk, chunk_of of)
{
	if (of.size == GREP_CHUNK)
		read_chunk(l, job, chunk, of.file, {of.place.file, of.place.offset + GREP_CHUNK - (job->length - 1)});
	else
		end_file(l, job, chunk, of.file);
}

/* What begins in the chunk from byte @at on. Passes before the last one only count. */
static __device__ void search_from(weir::loop &l, grep_job *job, uint8_t *chunk, chunk_of of, unsigned at)
{
	const unsigned file = of.place.file % job->files;
	const bool keeps = of.place.file / job->files + 1 == job->passes;

	for (; at < of.size; at += GREP_PIECE) {
		grep::search(chunk + at, min(GREP_PIECE + job->length - 1, of.size - at), job->word, job->length,
			     {file, of.place.offset + at}, reinterpret_cast<grep_match *>(job->matches),
			     keeps ? &job->found : &job->before, keeps ? job->most : 0, threadIdx.x, blockDim.x);
		if (l.post_task_if_necessary(
			    [=](weir::loop &later) { search_from(later, job, chunk, of, at + GREP_PIECE); }))
			return;
	}
	end_chunk(l, job, chunk, of);
}

static __device__ void read_chunk(weir::loop &l, grep_job *job, uint8_t *chunk, int file, grep_match place)
{
	weir::file::read(l, file, chunk, GREP_CHUNK, place.offset, [=](weir::loop &later, int64_t n) {
		if (is_good(later, n))
			search_from(later, job, chunk, {place, file, static_cast<unsigned>(n)}, 0);
	});
}

static __device__ void next_file(weir::loop &l, grep_job *job, uint8_t *chunk)
{
	unsigned number = block_add(&job->ticket, 1u);

	if (number >= job->files * job->passes)
		return;
	const char *path = reinterpret_cast<const char *>(job->paths) + size_t(number % job->files) * GREP_PATH;
	weir::file::open(l, path, 0, 0, [=](weir::loop &later, int64_t file) {
		if (is_good(later, file))
			read_chunk(later, job, chunk, static_cast<int>(file), {number, 0});
	});
}

extern "C" __global__ void __launch_bounds__(GREP_THREADS, 8) grep_loop(weir::loop_args args, grep_job *job)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		uint8_t *chunks = reinterpret_cast<uint8_t *>(job->chunks);

		for (unsigned i = 0; i < job->slots; i++)
			next_file(l, job, chunks + (size_t(blockIdx.x) * job->slots + i) * (GREP_CHUNK + GREP_AHEAD));
	});
}
