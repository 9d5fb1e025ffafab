/* Finds a word in many files and writes where it is into a result file, in one of four ways:
 *
 *   cpu     all processors read and search
 *   native  the host reads all files and copies them to the GPU; one launch
 *   split   the same in batches: while the GPU searches one, the host reads the next
 *   loop    an event loop on the GPU opens, reads, searches and writes
 *
 * The result of each is compared with that of the CPU. Prints a line of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base.h>

#include "corpus.h"
#include "host.h"

extern const char grep_ptx[], grep_loop_ptx[];

#define PIECE       (16u << 10) /* bytes that a block of the kernel searches */
#define BATCH       (8u << 20)  /* bytes of a batch of files, about */
#define STAGING     64          /* buffers of the loop */
#define MATCHES_MAX (1u << 22)  /* of a batch */

struct grep {
	struct workload w;
	struct corpus corpus;
	uint32_t length; /* of the word */
	uint64_t bytes, slots, blocks;
	const char *way;
	char result[GREP_PATH];
};

/* Files that are on the GPU together. */
struct batch {
	CUstream stream;
	size_t capacity, used; /* bytes of text */
	uint32_t pieces, pieces_max;
	uint8_t *text; /* the host's, like all up to @found */
	uint64_t *starts;
	struct grep_match *places;
	uint32_t *sizes;
	uint32_t *found; /* mapped */
	CUdeviceptr text_at, starts_at, places_at, sizes_at, matches_at, found_at;
};

static void *pinned(size_t bytes)
{
	void *memory;

	CU(cuMemHostAlloc(&memory, bytes, 0));
	return memory;
}

static void batch_init(struct batch *batch, size_t capacity, uint32_t files)
{
	batch->capacity = capacity;
	batch->pieces_max = (uint32_t)(capacity / PIECE) + files;
	CU(cuStreamCreate(&batch->stream, CU_STREAM_NON_BLOCKING));
	batch->text = pinned(capacity);
	batch->starts = pinned(batch->pieces_max * sizeof(*batch->starts));
	batch->places = pinned(batch->pieces_max * sizeof(*batch->places));
	batch->sizes = pinned(batch->pieces_max * sizeof(*batch->sizes));
	batch->found = host_mapped(sizeof(uint32_t), &batch->found_at);
	CU(cuMemAlloc(&batch->text_at, capacity));
	CU(cuMemAlloc(&batch->starts_at, batch->pieces_max * sizeof(*batch->starts)));
	CU(cuMemAlloc(&batch->places_at, batch->pieces_max * sizeof(*batch->places)));
	CU(cuMemAlloc(&batch->sizes_at, batch->pieces_max * sizeof(*batch->sizes)));
	CU(cuMemAlloc(&batch->matches_at, MATCHES_MAX * sizeof(struct grep_match)));
}

static void add_file(const struct grep *grep, struct batch *batch, uint32_t file)
{
	uint32_t size = grep->corpus.sizes[file];

	corpus_read(&grep->corpus, file, batch->text + batch->used);
	for (uint32_t at = 0; at < size; at += PIECE, batch->pieces++) {
		batch->starts[batch->pieces] = batch->used + at;
		batch->places[batch->pieces] = (struct grep_match){file, at};
		batch->sizes[batch->pieces] =
			(uint32_t)smaller(PIECE + grep->length - 1, size - at);
	}
	batch->used += size;
}

static void copy_in(const struct batch *batch, CUdeviceptr to, const void *from, size_t bytes)
{
	CU(cuMemcpyHtoDAsync(to, from, bytes, batch->stream));
}

static void search_batch(struct grep *grep, struct batch *batch, CUfunction kernel,
			 CUdeviceptr word)
{
	unsigned most = MATCHES_MAX;
	void *parameters[] = {&batch->text_at,
			      &batch->starts_at,
			      &batch->places_at,
			      &batch->sizes_at,
			      &word,
			      &grep->length,
			      &batch->matches_at,
			      &batch->found_at,
			      &most};

	*batch->found = 0;
	copy_in(batch, batch->text_at, batch->text, batch->used);
	copy_in(batch, batch->starts_at, batch->starts, batch->pieces * sizeof(*batch->starts));
	copy_in(batch, batch->places_at, batch->places, batch->pieces * sizeof(*batch->places));
	copy_in(batch, batch->sizes_at, batch->sizes, batch->pieces * sizeof(*batch->sizes));
	CU(cuLaunchKernel(kernel, batch->pieces, 1, 1, GREP_THREADS, 1, 1, 0, batch->stream,
			  parameters, NULL));
}

/* Waits for the batch and takes its matches; it is empty then. */
static void collect(struct batch *batch, struct matches *matches)
{
	struct grep_match *values;

	CU(cuStreamSynchronize(batch->stream));
	if (!batch->used)
		return;
	if (*batch->found > MATCHES_MAX)
		workload_fail("too many matches");
	values = workload_alloc((*batch->found + 1) * sizeof(*values));
	CU(cuMemcpyDtoH(values, batch->matches_at, *batch->found * sizeof(*values)));
	matches_add(matches, values, *batch->found);
	free(values);
	batch->used = batch->pieces = 0;
}

static void write_result(const struct grep *grep, const struct matches *matches)
{
	cleanup(closep) int fd = open(grep->result, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t bytes = matches->n * sizeof(*matches->values);

	if (fd < 0 || write(fd, matches->values, bytes) != (ssize_t)bytes)
		workload_fail("%s: %s", grep->result, strerror(errno));
}

static size_t total(const struct corpus *corpus)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < corpus->files; i++)
		bytes += corpus->sizes[i];
	return bytes;
}

/* @limit: bytes of a batch; two batches take turns. Returns seconds. */
static double run_batches(struct grep *grep, size_t limit)
{
	CUfunction kernel = workload_kernel(&grep->w, "grep_chunks");
	CUdeviceptr word = host_zeros(GREP_WORD);
	struct batch batches[2] = {0}, *batch = batches;
	struct matches matches = {0};
	uint64_t began;

	workload_upload(word, grep->corpus.word, grep->length);
	for (size_t i = 0; i < countof(batches); i++)
		batch_init(&batches[i], limit, grep->corpus.files);
	began = now_ns();
	for (uint32_t i = 0; i < grep->corpus.files; i++) {
		if (batch->used + grep->corpus.sizes[i] > batch->capacity) {
			search_batch(grep, batch, kernel, word);
			batch = batch == batches ? batches + 1 : batches;
			collect(batch, &matches);
		}
		add_file(grep, batch, i);
	}
	search_batch(grep, batch, kernel, word);
	for (size_t i = 0; i < countof(batches); i++)
		collect(&batches[i], &matches);
	write_result(grep, &matches);
	free(matches.values);
	return host_seconds(began);
}

static double run_native(void *program)
{
	struct grep *grep = program;
	return run_batches(grep, total(&grep->corpus));
}

static double run_split(void *program)
{
	struct grep *grep = program;
	return run_batches(grep, larger(BATCH, 2 * grep->bytes));
}

static double run_cpu(void *program)
{
	struct grep *grep = program;
	struct matches matches = {0};
	uint64_t began = now_ns();

	corpus_search_all(&grep->corpus, &matches);
	write_result(grep, &matches);
	free(matches.values);
	return host_seconds(began);
}

/* The paths of all files, on the device. */
static CUdeviceptr paths(const struct corpus *corpus)
{
	cleanup(freep) char *all = calloc(corpus->files, GREP_PATH);
	CUdeviceptr device = host_zeros((size_t)corpus->files * GREP_PATH);

	for (uint32_t i = 0; all && i < corpus->files; i++)
		corpus_path(corpus, i, all + (size_t)i * GREP_PATH);
	workload_upload(device, all, (size_t)corpus->files * GREP_PATH);
	return device;
}

static double run_loop(void *program)
{
	struct grep *grep = program;
	const struct weir_loop_options options = {.blocks = (uint32_t)grep->blocks,
						  .threads = GREP_THREADS,
						  .callbacks = (uint32_t)grep->slots + 1,
						  .staging = STAGING,
						  .name = "grep"};
	struct grep_job job = {.length = grep->length,
			       .files = grep->corpus.files,
			       .slots = (uint32_t)grep->slots,
			       .output = -1,
			       .paths = paths(&grep->corpus)};
	CUdeviceptr device = host_zeros(sizeof(job));
	struct weir_loop_stats stats;
	struct weir_loop *loop;

	memcpy(job.word, grep->corpus.word, grep->length);
	memcpy(job.result, grep->result, sizeof(job.result));
	CU(cuModuleLoadData(&grep->w.module, grep_loop_ptx));
	loop = host_loop(workload_kernel(&grep->w, "grep_loop"), &options);
	weir_loop_stats(loop, &stats);
	job.slots_at = host_zeros((size_t)stats.blocks * grep->slots * sizeof(struct grep_slot));
	workload_upload(device, &job, sizeof(job));
	return host_loop_run(loop, (void *[]){NULL, &device});
}

static const struct host_way ways[] = {
	{"cpu", run_cpu}, {"native", run_native}, {"split", run_split}, {"loop", run_loop}};

static const struct host_way *parse(struct grep *grep, int argc, char **argv)
{
	const struct workload_option own[] = {
		{"folder", OPTION_TEXT, &grep->corpus.folder, "for the files; they are made"},
		{"way", OPTION_TEXT, &grep->way, "cpu, native, split or loop (default)"},
		{"bytes", OPTION_NUMBER, &grep->bytes, "of a file, on average"},
		{"word", OPTION_TEXT, &grep->corpus.word, "to be found"},
		{"blocks", OPTION_NUMBER, &grep->blocks, "of the loop; default: as many as fit"},
		{"slots", OPTION_NUMBER, &grep->slots, "files of a block of the loop at a time"},
		{0}};

	workload_parse(&grep->w, argc, argv, "finds a word; --size: number of files", own);
	grep->bytes = workload_pick(&grep->w, grep->bytes, 20000, 1u << 20);
	grep->corpus.files = (uint32_t)workload_pick(&grep->w, grep->w.size, 12, 512);
	grep->length = (uint32_t)strnlen(grep->corpus.word, GREP_WORD);
	if (!grep->corpus.folder || grep->length < 2 || grep->length >= GREP_WORD ||
	    grep->slots < 1 || grep->slots > 31 || grep->bytes > 1u << 28 || grep->bytes < 64 ||
	    grep->corpus.files < 1 || grep->corpus.files > 1u << 20) {
		fprintf(stderr, "loop-grep: --folder: needed; the others: out of range\n");
		exit(2);
	}
	return host_way_find(ways, countof(ways), grep->way);
}

int main(int argc, char **argv)
{
	static struct grep grep = {
		.w = {.seed = 1}, .corpus = {.word = "needle"}, .slots = 4, .way = "loop"};
	const struct host_way *way = parse(&grep, argc, argv);
	struct matches wanted = {0};
	double seconds;

	snprintf(grep.result, sizeof(grep.result), "%.200s/result-%d", grep.corpus.folder,
		 getpid());
	corpus_make(&grep.corpus, grep.w.seed, (uint32_t)grep.bytes);
	workload_open(&grep.w, grep_ptx);
	workload_ready(&grep.w);
	seconds = way->run(&grep);
	corpus_search_all(&grep.corpus, &wanted);
	corpus_check(grep.result, &wanted);
	unlink(grep.result);
	printf("{\"way\":\"%s\",\"files\":%u,\"bytes\":%zu,\"matches\":%zu,\"seconds\":%.6f}\n",
	       way->name, grep.corpus.files, total(&grep.corpus), wanted.n, seconds);
	return 0;
}
