/* Reads a file into device memory in requests of --size bytes, in one of five ways:
 *
 *   loop   an event loop on the GPU asks for each
 *   read   the host reads into pinned memory and copies from there; DEPTH buffers take turns
 *   uring  the host reads into pinned memory by io_uring, --depth requests at a time; no copy
 *   host   all processors read into pinned memory, in parts of at most PART; no copy: what the
 *          page cache does
 *   link   only the copies from pinned memory: what the link does
 *
 * The memory is compared with the file, except for `host` and `link`. Several ways take turns in
 * each round. With --direct the file is read by O_DIRECT from the disk; GPUDirect Storage is not
 * used. Prints a line of JSON: bytes per second of each way in each round, and how many bytes of
 * the file are in the page cache in the end. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/base.h>

#include "file-read.h"
#include "../parallel.h"
#include "host.h"

extern const char file_read_ptx[];

#define DEPTH      16u
#define DEPTH_MOST 1024u
#define ALIGNED    4096u /* what O_DIRECT wants */
#define PART       (1u << 20)
#define STAGING    32u /* buffers of PART bytes */
#define WAYS       5u
#define ROUNDS     64u

struct transfer {
	struct workload w;
	struct read_job job;
	const char *folder, *way;
	uint64_t slots, blocks, passes, readers, rounds, depth;
	bool is_direct;
	int fd;
	uint8_t *pinned; /* DEPTH requests; for uring the whole file */
};

static uint64_t word_at(uint64_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15u;
}

/* What was written leaves the page cache, and all reads go around it. */
static void read_from_disk(struct transfer *transfer)
{
	const char *path = transfer->job.path;

	if (fsync(transfer->fd) < 0 || posix_fadvise(transfer->fd, 0, 0, POSIX_FADV_DONTNEED))
		workload_fail("%s does not leave the page cache", path);
	close(transfer->fd);
	transfer->fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (transfer->fd < 0)
		workload_fail("O_DIRECT: %s: %s", path, strerror(errno));
	transfer->job.flags = O_DIRECT;
}

/* Bytes of the file that are in the page cache. */
static size_t cached_bytes(const struct transfer *transfer)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = transfer->job.bytes, cached = 0;
	size_t pages = (bytes + page - 1) / page;
	cleanup(freep) unsigned char *present = workload_alloc(pages);
	void *file = mmap(NULL, bytes, PROT_READ, MAP_SHARED, transfer->fd, 0);

	if (file == MAP_FAILED || mincore(file, bytes, present) < 0)
		workload_fail("%s: %s", transfer->job.path, strerror(errno));
	for (size_t i = 0; i < pages; i++)
		cached += present[i] & 1 ? page : 0;
	munmap(file, bytes);
	return cached;
}

static void make_file(struct transfer *transfer)
{
	size_t words = transfer->job.bytes / sizeof(uint64_t);
	cleanup(freep) uint64_t *data = workload_alloc(transfer->job.bytes);
	const char *path = transfer->job.path;

	for (size_t i = 0; i < words; i++)
		data[i] = word_at(i);
	transfer->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (size_t done = 0; done < transfer->job.bytes;) {
		ssize_t n = write(transfer->fd, (char *)data + done, transfer->job.bytes - done);

		if (n <= 0)
			workload_fail("%s: %s", path, strerror(errno));
		done += (size_t)n;
	}
	if (transfer->is_direct)
		read_from_disk(transfer);
}

static void check(const uint64_t *data, uint64_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*data); i++)
		if (data[i] != word_at(i))
			workload_fail("word %zu is %#" PRIx64 ", not %#" PRIx64, i, data[i],
				      word_at(i));
}

static void check_device(const struct transfer *transfer)
{
	cleanup(freep) uint64_t *data = workload_alloc(transfer->job.bytes);

	CU(cuMemcpyDtoH(data, transfer->job.to, transfer->job.bytes));
	check(data, transfer->job.bytes);
}

/* Where request @n reads, and how much. */
static uint64_t place(const struct transfer *transfer, uint64_t n, uint64_t *size)
{
	uint64_t at = n * transfer->job.chunk % transfer->job.bytes;

	*size = smaller(transfer->job.chunk, transfer->job.bytes - at);
	return at;
}

/* The read and the link way. */
static double copy_all(struct transfer *transfer, bool reads)
{
	CUstream streams[DEPTH];
	uint64_t began, size;

	CU(cuMemHostAlloc((void **)&transfer->pinned, DEPTH * transfer->job.chunk, 0));
	for (unsigned i = 0; i < DEPTH; i++)
		CU(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	began = now_ns();
	for (uint64_t n = 0; n < transfer->job.total; n++) {
		uint64_t at = place(transfer, n, &size);
		uint8_t *buffer = transfer->pinned + n % DEPTH * transfer->job.chunk;

		CU(cuStreamSynchronize(streams[n % DEPTH]));
		if (reads && pread(transfer->fd, buffer, size, (off_t)at) != (ssize_t)size)
			workload_fail("pread: %s", strerror(errno));
		CU(cuMemcpyHtoDAsync(transfer->job.to + at, buffer, size, streams[n % DEPTH]));
	}
	CU(cuCtxSynchronize());
	double seconds = host_seconds(began);

	for (unsigned i = 0; i < DEPTH; i++)
		CU(cuStreamDestroy(streams[i]));
	CU(cuMemFreeHost(transfer->pinned));
	if (reads)
		check_device(transfer);
	return seconds;
}

static double run_read(void *program)
{
	struct transfer *transfer = program;
	return copy_all(transfer, true);
}

/* Part @i of all passes, into one of STAGING buffers. */
static void read_part(void *context, size_t i)
{
	const struct transfer *transfer = context;
	size_t size = smaller(transfer->job.chunk, PART);
	uint64_t at = i * size % transfer->job.bytes;
	uint8_t *buffer = transfer->pinned + i % STAGING * size;

	size = smaller(size, transfer->job.bytes - at);
	if (pread(transfer->fd, buffer, size, (off_t)at) != (ssize_t)size)
		workload_fail("pread: %s", strerror(errno));
}

static double run_host(void *program)
{
	struct transfer *transfer = program;
	size_t size = smaller(transfer->job.chunk, PART);
	uint64_t began;

	CU(cuMemHostAlloc((void **)&transfer->pinned, STAGING * size, 0));
	began = now_ns();
	in_parallel(transfer->job.bytes / size * transfer->passes, read_part, transfer);
	double seconds = host_seconds(began);

	CU(cuMemFreeHost(transfer->pinned));
	return seconds;
}

static double run_link(void *program)
{
	struct transfer *transfer = program;
	return copy_all(transfer, false);
}

static void submit(struct transfer *transfer, struct io_uring *ring, uint64_t n)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	uint64_t size, at = place(transfer, n, &size);

	if (!sqe)
		workload_fail("io_uring: no room");
	io_uring_prep_read(sqe, transfer->fd, transfer->pinned + at, (unsigned)size, at);
	io_uring_sqe_set_data64(sqe, size);
}

static void reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int error = io_uring_wait_cqe(ring, &cqe);

	if (error || cqe->res != (int)io_uring_cqe_get_data64(cqe))
		workload_fail("io_uring: %s", strerror(error ? -error : -cqe->res));
	io_uring_cqe_seen(ring, cqe);
}

static double run_uring(void *program)
{
	struct transfer *transfer = program;
	struct io_uring ring;
	uint64_t began, asked = 0, done = 0;
	int error = io_uring_queue_init((unsigned)transfer->depth, &ring, 0);

	if (error)
		workload_fail("io_uring: %s", strerror(-error));
	CU(cuMemHostAlloc((void **)&transfer->pinned, transfer->job.bytes, 0));
	began = now_ns();
	while (done < transfer->job.total) {
		for (; asked < transfer->job.total && asked < done + transfer->depth; asked++)
			submit(transfer, &ring, asked);
		io_uring_submit(&ring);
		reap(&ring);
		done++;
	}
	double seconds = host_seconds(began);

	io_uring_queue_exit(&ring);
	check((const uint64_t *)transfer->pinned, transfer->job.bytes);
	CU(cuMemFreeHost(transfer->pinned));
	return seconds;
}

static double run_loop(void *program)
{
	struct transfer *transfer = program;
	const struct weir_loop_options options = {.blocks = (uint32_t)transfer->blocks,
						  .threads = 128,
						  .callbacks = (uint32_t)transfer->slots + 1,
						  .staging = STAGING,
						  .readers = (uint32_t)transfer->readers,
						  .cufile = "",
						  .name = "file-read"};
	CUdeviceptr device = host_zeros(sizeof(transfer->job));
	struct weir_loop *loop = host_loop(workload_kernel(&transfer->w, "file_read"), &options);
	double seconds;

	workload_upload(device, &transfer->job, sizeof(transfer->job));
	seconds = host_loop_run(loop, (void *[]){NULL, &device});
	host_loop_end(loop);
	CU(cuMemFree(device));
	check_device(transfer);
	return seconds;
}

static const struct host_way ways[WAYS] = {{"loop", run_loop},
					   {"read", run_read},
					   {"uring", run_uring},
					   {"host", run_host},
					   {"link", run_link}};

/* The ways that are named, with commas between them. Returns how many. */
static unsigned find_ways(const char *names, const struct host_way **found)
{
	char name[16];
	unsigned n = 0;

	for (const char *at = names, *end; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ',');
		snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
		if (n == WAYS) {
			fprintf(stderr, "--way: at most %u\n", WAYS);
			exit(2);
		}
		found[n++] = host_way_find(ways, countof(ways), name);
	}
	return n;
}

static void parse(struct transfer *transfer, int argc, char **argv)
{
	uint64_t bytes = 0;
	const struct workload_option own[] = {
		{"folder", OPTION_TEXT, &transfer->folder, "for the file"},
		{"way", OPTION_TEXT, &transfer->way,
		 "loop (default), read, uring, host, link; several with commas"},
		{"rounds", OPTION_NUMBER, &transfer->rounds, "of all ways; 1"},
		{"bytes", OPTION_NUMBER, &bytes, "of the file"},
		{"direct", OPTION_FLAG, &transfer->is_direct,
		 "around the page cache, by O_DIRECT; --size: a multiple of 4096"},
		{"depth", OPTION_NUMBER, &transfer->depth, "requests of uring at a time; 16"},
		{"blocks", OPTION_NUMBER, &transfer->blocks, "of the loop"},
		{"slots", OPTION_NUMBER, &transfer->slots, "requests of a block at a time"},
		{"readers", OPTION_NUMBER, &transfer->readers,
		 "threads of the loop that copy from the page cache; 0: its default"},
		{0}};
	struct read_job *job = &transfer->job;

	workload_parse(&transfer->w, argc, argv,
		       "reads a file; --size: bytes of a request; --iterations: passes", own);
	job->bytes = workload_pick(&transfer->w, bytes, 1u << 20, 256u << 20);
	job->chunk = workload_pick(&transfer->w, transfer->w.size, 4096, 1u << 20);
	transfer->passes = transfer->w.iterations ? transfer->w.iterations : 1;
	if (!transfer->folder || job->bytes % 8 || job->bytes < 8 || job->bytes > 1ull << 36 ||
	    job->chunk < 8 || job->chunk % 8 || job->chunk > job->bytes ||
	    job->bytes % job->chunk || job->chunk > 1u << 30 || transfer->slots < 1 ||
	    transfer->slots > 31 || transfer->readers > 64 || transfer->rounds < 1 ||
	    transfer->rounds > ROUNDS || transfer->depth < 1 || transfer->depth > DEPTH_MOST ||
	    (transfer->is_direct && job->chunk % ALIGNED)) {
		fprintf(stderr, "loop-file-read: --folder: needed; --size divides --bytes\n");
		exit(2);
	}
	job->total = job->bytes / job->chunk * transfer->passes;
	job->slots = (uint32_t)transfer->slots;
}

static void print(const struct transfer *transfer, const struct host_way **chosen, unsigned n,
		  double rate[WAYS][ROUNDS])
{
	printf("{\"chunk\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"rates\":{", transfer->job.chunk,
	       transfer->job.bytes * transfer->passes);
	for (unsigned i = 0; i < n; i++) {
		printf("%s\"%s\":[", i ? "," : "", chosen[i]->name);
		for (unsigned round = 0; round < transfer->rounds; round++)
			printf("%s%.0f", round ? "," : "", rate[i][round]);
		putchar(']');
	}
	printf("},\"cached\":%zu}\n", cached_bytes(transfer));
}

int main(int argc, char **argv)
{
	static struct transfer transfer = {.way = "loop", .slots = 4, .rounds = 1, .depth = DEPTH};
	static double rate[WAYS][ROUNDS];
	const struct host_way *chosen[WAYS];
	struct read_job *job = &transfer.job;

	parse(&transfer, argc, argv);
	unsigned n = find_ways(transfer.way, chosen);
	snprintf(job->path, sizeof(job->path), "%.200s/read-%d", transfer.folder, getpid());
	make_file(&transfer);
	workload_open(&transfer.w, file_read_ptx);
	job->to = host_zeros(job->bytes);
	workload_ready(&transfer.w);
	for (unsigned round = 0; round < transfer.rounds; round++)
		for (unsigned i = 0; i < n; i++)
			rate[i][round] =
				(double)(job->bytes * transfer.passes) / chosen[i]->run(&transfer);
	print(&transfer, chosen, n, rate);
	unlink(job->path);
	return 0;
}
