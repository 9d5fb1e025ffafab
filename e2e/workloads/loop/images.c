/* Finds for each query picture the one of a library that is most like it, in one of five ways:
 *
 *   cpu       all processors
 *   native    a thread reads all and copies it to the GPU; one launch
 *   parallel  the same, but all processors read
 *   split     a thread reads and copies the library in chunks: a launch for each, two under way
 *   loop      an event loop on the GPU reads, compares and writes
 *
 * Each query is a picture of the library with some noise, so the answer is known. Every answer is
 * compared with the CPU's. Prints a line of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base.h>

#include "../parallel.h"
#include "host.h"
#include "images.h"

extern const char images_ptx[], images_loop_ptx[], images_loop_leaving_ptx[];

#define NOISE     8u           /* a grey value of a query is off by less than this */
#define SPLIT     (2u << 20)   /* bytes of the library in a launch */
#define READ      (256u << 10) /* bytes that a processor reads at once */
#define STAGING   64           /* buffers of the loop */
#define LINGER_US 500          /* the kernel waits for its last write for so long */
#define PARTS_MAX 65535u       /* of a grid */

struct match {
	struct workload w;
	const char *folder, *way;
	uint64_t blocks;
	const char *loop_ptx;
	bool leaving;
	struct image_job job;       /* paths and sizes */
	uint8_t *library, *queries; /* what the files hold */
	image_match *wanted, *found;
};

static size_t library_bytes(const struct match *match)
{
	return (size_t)match->job.library_n * IMAGE_BYTES;
}

static size_t queries_bytes(const struct match *match)
{
	return (size_t)match->job.queries_n * IMAGE_BYTES;
}

static void transfer(const char *path, int flags, void *data, size_t size)
{
	cleanup(closep) int fd = open(path, flags | O_CLOEXEC, 0600);
	size_t done = 0;

	while (fd >= 0 && done < size) {
		ssize_t n = flags & O_WRONLY ? write(fd, (char *)data + done, size - done)
					     : read(fd, (char *)data + done, size - done);

		if (n <= 0)
			workload_fail("%s: %s", path, n ? strerror(errno) : "too short");
		done += (size_t)n;
	}
	if (fd < 0)
		workload_fail("%s: %s", path, strerror(errno));
}

static void make_pictures(struct match *match)
{
	struct random random = {match->w.seed};
	uint64_t *words;

	match->library = workload_alloc(library_bytes(match));
	match->queries = workload_alloc(queries_bytes(match));
	words = (uint64_t *)match->library;
	for (size_t i = 0; i < library_bytes(match) / sizeof(*words); i++)
		words[i] = random_next(&random);
	for (uint32_t q = 0; q < match->job.queries_n; q++) {
		uint8_t *query = match->queries + (size_t)q * IMAGE_BYTES;

		memcpy(query,
		       match->library +
			       (size_t)random_below(&random, match->job.library_n) * IMAGE_BYTES,
		       IMAGE_BYTES);
		for (uint32_t i = 0; i < IMAGE_BYTES; i++)
			query[i] ^= (uint8_t)random_below(&random, NOISE);
	}
	transfer(match->job.library, O_WRONLY | O_CREAT | O_TRUNC, match->library,
		 library_bytes(match));
	transfer(match->job.queries, O_WRONLY | O_CREAT | O_TRUNC, match->queries,
		 queries_bytes(match));
}

static uint32_t difference(const uint8_t *a, const uint8_t *b)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < IMAGE_BYTES; i++)
		sum += (uint32_t)((a[i] - b[i]) * (a[i] - b[i]));
	return sum;
}

static void find_one(void *context, size_t q)
{
	struct match *match = context;
	image_match best = IMAGE_NONE;

	for (uint32_t i = 0; i < match->job.library_n; i++) {
		image_match of = (image_match)difference(match->queries + q * IMAGE_BYTES,
							 match->library + (size_t)i * IMAGE_BYTES)
					 << 32 |
				 i;

		best = of < best ? of : best;
	}
	match->wanted[q] = best;
}

static void find_all(struct match *match)
{
	in_parallel(match->job.queries_n, find_one, match);
}

static void write_result(const struct match *match, image_match *found)
{
	transfer(match->job.result, O_WRONLY | O_CREAT | O_TRUNC, found,
		 match->job.queries_n * sizeof(*found));
}

/* Reads both files, as the other ways do. */
static double run_cpu(void *program)
{
	struct match *match = program;
	uint64_t began = now_ns();

	transfer(match->job.library, O_RDONLY, match->library, library_bytes(match));
	transfer(match->job.queries, O_RDONLY, match->queries, queries_bytes(match));
	find_all(match);
	write_result(match, match->wanted);
	return host_seconds(began);
}

/* A part of the library that is on the GPU. */
struct piece {
	CUstream stream;
	uint8_t *host;
	CUdeviceptr device;
};

static void piece_init(struct piece *piece, size_t bytes)
{
	CU(cuStreamCreate(&piece->stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemHostAlloc((void **)&piece->host, bytes, 0));
	CU(cuMemAlloc(&piece->device, bytes));
}

/* What is read into a piece. */
struct part_of_file {
	int fd;
	const struct piece *piece;
	size_t at, bytes; /* of the file */
};

static void read_part(void *context, size_t i)
{
	const struct part_of_file *wanted = context;
	size_t done = i * READ, end = smaller(done + READ, wanted->bytes);

	while (done < end) {
		ssize_t n = pread(wanted->fd, wanted->piece->host + done, end - done,
				  (off_t)(wanted->at + done));

		if (n <= 0)
			workload_fail("library: %s", n ? strerror(errno) : "too short");
		done += (size_t)n;
	}
}

static void read_piece(struct part_of_file *wanted, bool parallel)
{
	size_t parts = (wanted->bytes + READ - 1) / READ;

	if (parallel)
		in_parallel(parts, read_part, wanted);
	for (size_t i = 0; i < parts && !parallel; i++)
		read_part(wanted, i);
}

/* @limit: pictures in a launch. @parallel: all processors read. Returns seconds. */
static double run_pieces(struct match *match, uint32_t limit, bool parallel)
{
	CUfunction kernel = workload_kernel(&match->w, "images_part");
	cleanup(closep) int fd = open(match->job.library, O_RDONLY | O_CLOEXEC);
	struct piece pieces[2], queries;
	CUdeviceptr best = host_zeros(match->job.queries_n * sizeof(image_match));
	uint32_t groups = (match->job.queries_n + IMAGE_GROUP - 1) / IMAGE_GROUP;
	uint64_t began;

	for (size_t i = 0; i < countof(pieces); i++)
		piece_init(&pieces[i], (size_t)limit * IMAGE_BYTES);
	piece_init(&queries, queries_bytes(match));
	CU(cuMemsetD8(best, 0xff, match->job.queries_n * sizeof(image_match)));
	began = now_ns();
	transfer(match->job.queries, O_RDONLY, queries.host, queries_bytes(match));
	workload_upload(queries.device, queries.host, queries_bytes(match));
	for (uint32_t first = 0, turn = 0; first < match->job.library_n;
	     first += limit, turn = !turn) {
		struct piece *piece = &pieces[turn];
		uint32_t n = (uint32_t)smaller(limit, match->job.library_n - first);
		struct part_of_file wanted = {fd, piece, (size_t)first * IMAGE_BYTES,
					      (size_t)n * IMAGE_BYTES};
		void *parameters[] = {
			&queries.device, &match->job.queries_n, &piece->device, &n, &first, &best};

		CU(cuStreamSynchronize(piece->stream));
		read_piece(&wanted, parallel);
		CU(cuMemcpyHtoDAsync(piece->device, piece->host, wanted.bytes, piece->stream));
		CU(cuLaunchKernel(kernel, groups, (n + IMAGE_CHUNK - 1) / IMAGE_CHUNK, 1,
				  IMAGE_THREADS, 1, 1, 0, piece->stream, parameters, NULL));
	}
	CU(cuCtxSynchronize());
	CU(cuMemcpyDtoH(match->found, best, match->job.queries_n * sizeof(image_match)));
	write_result(match, match->found);
	return host_seconds(began);
}

static double run_native(void *program)
{
	struct match *match = program;
	return run_pieces(match, match->job.library_n, false);
}

static double run_parallel(void *program)
{
	struct match *match = program;
	return run_pieces(match, match->job.library_n, true);
}

static double run_split(void *program)
{
	struct match *match = program;
	return run_pieces(match, SPLIT / IMAGE_BYTES, false);
}

static double run_loop(void *program)
{
	struct match *match = program;
	const struct weir_loop_options options = {.blocks = (uint32_t)match->blocks,
						  .threads = IMAGE_THREADS,
						  .callbacks = IMAGE_SLOTS,
						  .staging = STAGING,
						  .linger_us = LINGER_US,
						  .spin_us = HOST_SPIN_US,
						  .name = "images"};
	CUdeviceptr device = host_zeros(sizeof(match->job));
	size_t reads = (match->job.library_n + IMAGE_READ - 1) / IMAGE_READ;
	struct weir_loop *loop;
	double seconds;

	CU(cuModuleLoadData(&match->w.module, match->loop_ptx));
	loop = host_loop(workload_kernel(&match->w, "images_loop"), &options);
	match->job.file = match->job.out = match->job.ready = -1;
	match->job.queries_at = host_zeros(queries_bytes(match));
	match->job.best = host_zeros(match->job.queries_n * sizeof(image_match));
	CU(cuMemsetD8(match->job.best, 0xff, match->job.queries_n * sizeof(image_match)));
	match->job.pictures = host_zeros(library_bytes(match));
	match->job.read = host_zeros(reads * sizeof(int32_t));
	CU(cuMemsetD8(match->job.read, 0xff, reads * sizeof(int32_t)));
	CU(cuCtxSynchronize());
	workload_upload(device, &match->job, sizeof(match->job));
	seconds = host_loop_run(loop, (void *[]){NULL, &device});
	host_loop_end(loop);
	return seconds;
}

static const struct host_way ways[] = {{"cpu", run_cpu},
				       {"native", run_native},
				       {"parallel", run_parallel},
				       {"split", run_split},
				       {"loop", run_loop}};

static void check(const struct match *match)
{
	transfer(match->job.result, O_RDONLY, match->found,
		 match->job.queries_n * sizeof(*match->found));
	for (uint32_t q = 0; q < match->job.queries_n; q++)
		if (match->found[q] != match->wanted[q])
			workload_fail("query %u: picture %u, difference %u, not picture %u, "
				      "difference %u",
				      q, (uint32_t)match->found[q],
				      (uint32_t)(match->found[q] >> 32), (uint32_t)match->wanted[q],
				      (uint32_t)(match->wanted[q] >> 32));
}

static const struct host_way *parse(struct match *match, int argc, char **argv)
{
	uint64_t queries = 0;
	const struct workload_option own[] = {
		{"folder", OPTION_TEXT, &match->folder, "for the files"},
		{"way", OPTION_TEXT, &match->way, "cpu, native, parallel, split or loop (default)"},
		{"queries", OPTION_NUMBER, &queries, "how many"},
		{"blocks", OPTION_NUMBER, &match->blocks, "of the loop; default: as many as fit"},
		{"leaving", OPTION_FLAG, &match->leaving, HOST_LEAVING_HELP},
		{0}};

	workload_parse(&match->w, argc, argv, "finds pictures; --size: number in the library", own);
	match->job.library_n = (uint32_t)workload_pick(&match->w, match->w.size, 600, 25000);
	match->job.queries_n = (uint32_t)workload_pick(&match->w, queries, 20, 2000);
	if (!match->folder || match->job.library_n > PARTS_MAX * IMAGE_CHUNK ||
	    match->job.queries_n > 1u << 20 ||
	    (match->leaving && strcmp(match->way, "loop") != 0)) {
		fprintf(stderr, "loop-images: --folder: needed; the others: out of range\n");
		exit(2);
	}
	return host_way_find(ways, countof(ways), match->way);
}

int main(int argc, char **argv)
{
	static struct match match = {.w = {.seed = 1}, .way = "loop", .loop_ptx = images_loop_ptx};
	const struct host_way *way = parse(&match, argc, argv);
	struct image_job *job = &match.job;
	double seconds, leaving_us = 0;

	snprintf(job->library, sizeof(job->library), "%.200s/library-%d", match.folder, getpid());
	snprintf(job->queries, sizeof(job->queries), "%.200s/queries-%d", match.folder, getpid());
	snprintf(job->result, sizeof(job->result), "%.200s/matches-%d", match.folder, getpid());
	match.wanted = workload_alloc(job->queries_n * sizeof(*match.wanted));
	match.found = workload_alloc(job->queries_n * sizeof(*match.found));
	workload_open(&match.w, images_ptx);
	make_pictures(&match);
	workload_ready(&match.w);
	seconds = way->run(&match);
	if (match.leaving) {
		match.loop_ptx = images_loop_leaving_ptx;
		(void)way->run(&match);
		leaving_us = host_leaving_us(match.w.module);
	}
	find_all(&match);
	check(&match);
	unlink(job->library);
	unlink(job->queries);
	unlink(job->result);
	printf("{\"way\":\"%s\",\"pictures\":%u,\"queries\":%u,\"seconds\":%.6f,"
	       "\"leaving_us\":%.1f}\n",
	       way->name, job->library_n, job->queries_n, seconds, leaving_us);
	return 0;
}
