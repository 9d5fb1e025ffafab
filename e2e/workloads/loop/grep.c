/* Finds a word in many files and writes where it is into a result file, in one of five ways:
 *
 *   cpu     all processors read and search
 *   native  all processors read all files, then one copy to the GPU and one launch
 *   split   the same in batches: while the GPU searches one, the processors read the next
 *   parallel  each processor reads some files, copies them and launches, by itself
 *   loop    an event loop on the GPU opens, reads, searches and writes
 *
 * The result of each is compared with that of the CPU, which is there before the program is ready:
 * then all processors are the way's. With --repeat N the loop, or the way parallel, searches all
 * files so often and writes what it finds in the last pass; the loop counts in the others. Prints a
 * line of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base.h>

#include "../parallel.h"
#include "corpus.h"
#include "host.h"

extern const char grep_ptx[], grep_loop_ptx[], grep_loop_leaving_ptx[];

#define PIECE       (16u << 10) /* bytes that a block of the kernel searches */
#define BATCH       (64u << 20) /* bytes of a batch of files, about */
#define SHARE       4           /* files of a batch in the way parallel */
#define STAGING     64          /* buffers of the loop, if nothing else is said */
#define MATCHES_MAX (1u << 22)  /* of a batch */
#define REPEAT_MAX  1000        /* the count of all passes fits into 32 bits */
#define READERS_MAX 64
#define STAGING_MAX 1024

struct grep {
	struct workload w;
	struct corpus corpus;
	uint32_t length; /* of the word */
	uint64_t bytes, slots, blocks;
	uint64_t repeat, spin, readers, staging; /* of the loop */
	const char *way, *wanted; /* @wanted: where the result is to be, if it was said */
	const char *loop_ptx;
	bool leaving;
	struct matches wanted_matches; /* the CPU's */
	char result[GREP_PATH];
};

/* Files that are on the GPU together. */
struct batch {
	CUstream stream;
	size_t capacity, used; /* bytes of text */
	uint32_t pieces, pieces_max;
	uint32_t first, files;
	size_t *at;    /* of each file, in @text */
	uint8_t *text; /* the host's, like all up to @sizes */
	uint64_t *starts;
	struct grep_match *places;
	uint32_t *sizes;
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
	batch->at = workload_alloc(files * sizeof(*batch->at));
	batch->pieces_max = (uint32_t)(capacity / PIECE) + files;
	CU(cuStreamCreate(&batch->stream, CU_STREAM_NON_BLOCKING));
	batch->text = pinned(capacity + GREP_AHEAD);
	batch->starts = pinned(batch->pieces_max * sizeof(*batch->starts));
	batch->places = pinned(batch->pieces_max * sizeof(*batch->places));
	batch->sizes = pinned(batch->pieces_max * sizeof(*batch->sizes));
	batch->found_at = host_zeros(sizeof(uint32_t));
	CU(cuMemAlloc(&batch->text_at, capacity + GREP_AHEAD));
	CU(cuMemAlloc(&batch->starts_at, batch->pieces_max * sizeof(*batch->starts)));
	CU(cuMemAlloc(&batch->places_at, batch->pieces_max * sizeof(*batch->places)));
	CU(cuMemAlloc(&batch->sizes_at, batch->pieces_max * sizeof(*batch->sizes)));
	CU(cuMemAlloc(&batch->matches_at, MATCHES_MAX * sizeof(struct grep_match)));
}

/* Where a file begins that lies behind @used bytes. */
static size_t place(size_t used)
{
	return (used + GREP_AHEAD - 1) / GREP_AHEAD * GREP_AHEAD;
}

static bool fits(const struct grep *grep, const struct batch *batch, uint32_t file)
{
	return place(batch->used) + grep->corpus.sizes[file] <= batch->capacity;
}

static void add_file(const struct grep *grep, struct batch *batch, uint32_t file)
{
	uint32_t size = grep->corpus.sizes[file];

	if (!batch->files)
		batch->first = file;
	batch->used = place(batch->used);
	batch->at[batch->files++] = batch->used;
	for (uint32_t at = 0; at < size; at += PIECE, batch->pieces++) {
		batch->starts[batch->pieces] = batch->used + at;
		batch->places[batch->pieces] = (struct grep_match){file, at};
		batch->sizes[batch->pieces] =
			(uint32_t)smaller(PIECE + grep->length - 1, size - at);
	}
	batch->used += size;
}

struct batch_read {
	const struct grep *grep;
	const struct batch *batch;
};

static void read_one(void *context, size_t i)
{
	const struct batch_read *job = context;
	const struct batch *batch = job->batch;

	corpus_read(&job->grep->corpus, batch->first + (uint32_t)i, batch->text + batch->at[i]);
}

static void copy_in(const struct batch *batch, CUdeviceptr to, const void *from, size_t bytes)
{
	CU(cuMemcpyHtoDAsync(to, from, bytes, batch->stream));
}

/* Searches the files that were added and read. */
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

	CU(cuMemsetD32Async(batch->found_at, 0, 1, batch->stream));
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
	uint32_t found;

	CU(cuStreamSynchronize(batch->stream));
	if (!batch->files)
		return;
	CU(cuMemcpyDtoH(&found, batch->found_at, sizeof(found)));
	if (found > MATCHES_MAX)
		workload_fail("too many matches");
	values = workload_alloc((found + 1) * sizeof(*values));
	CU(cuMemcpyDtoH(values, batch->matches_at, found * sizeof(*values)));
	matches_add(matches, values, found);
	free(values);
	batch->used = batch->pieces = batch->files = 0;
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

static void read_and_search(struct grep *grep, struct batch *batch, CUfunction kernel,
			    CUdeviceptr word)
{
	in_parallel(batch->files, read_one, &(struct batch_read){grep, batch});
	search_batch(grep, batch, kernel, word);
}

/* @limit: bytes of a batch; two batches take turns. Returns seconds. */
static double run_batches(struct grep *grep, size_t limit)
{
	CUfunction kernel = workload_kernel(&grep->w, "grep_chunks");
	CUdeviceptr word = host_zeros(GREP_WORD);
	struct batch batches[2] = {0}, *batch = batches;
	struct matches matches = {0};

	workload_upload(word, grep->corpus.word, grep->length);
	for (size_t i = 0; i < countof(batches); i++)
		batch_init(&batches[i], limit, grep->corpus.files);
	workload_ready(&grep->w);
	for (uint32_t i = 0; i < grep->corpus.files; i++) {
		if (!fits(grep, batch, i)) {
			read_and_search(grep, batch, kernel, word);
			batch = batch == batches ? batches + 1 : batches;
			collect(batch, &matches);
		}
		add_file(grep, batch, i);
	}
	read_and_search(grep, batch, kernel, word);
	for (size_t i = 0; i < countof(batches); i++)
		collect(&batches[i], &matches);
	write_result(grep, &matches);
	free(matches.values);
	return host_seconds(grep->w.started);
}

static double run_native(void *program)
{
	struct grep *grep = program;
	return run_batches(grep, total(&grep->corpus) + (size_t)grep->corpus.files * GREP_AHEAD);
}

static double run_split(void *program)
{
	struct grep *grep = program;
	return run_batches(grep, larger(BATCH, 2 * grep->bytes));
}

/* In the way parallel: a processor's batches, and all processors. */
struct worker {
	struct batch batches[2];
	struct matches matches;
};
struct team {
	struct grep *grep;
	CUcontext context;
	CUfunction kernel;
	CUdeviceptr word;
	struct worker *workers;
	uint32_t next; /* file */
};

static void work_alone(void *context, size_t i)
{
	struct team *team = context;
	struct grep *grep = team->grep;
	struct worker *worker = &team->workers[i];
	uint32_t files = grep->corpus.files, first;

	CU(cuCtxSetCurrent(team->context));
	for (unsigned turn = 0;
	     (first = __atomic_fetch_add(&team->next, SHARE, __ATOMIC_RELAXED)) < files;
	     turn ^= 1) {
		struct batch *batch = &worker->batches[turn];
		struct batch_read job = {grep, batch};

		collect(batch, &worker->matches);
		for (uint32_t file = first; file < smaller(first + SHARE, files); file++)
			add_file(grep, batch, file);
		for (uint32_t k = 0; k < batch->files; k++)
			read_one(&job, k);
		search_batch(grep, batch, team->kernel, team->word);
	}
	for (size_t k = 0; k < countof(worker->batches); k++)
		collect(&worker->batches[k], &worker->matches);
}

static double run_parallel(void *program)
{
	struct grep *grep = program;
	struct team team = {.grep = grep,
			    .kernel = workload_kernel(&grep->w, "grep_chunks"),
			    .word = host_zeros(GREP_WORD)};
	size_t n = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct matches matches = {0};

	CU(cuCtxGetCurrent(&team.context));
	workload_upload(team.word, grep->corpus.word, grep->length);
	team.workers = calloc(n, sizeof(*team.workers));
	if (!team.workers)
		workload_fail("out of memory");
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < countof(team.workers[i].batches); k++)
			batch_init(&team.workers[i].batches[k],
				   SHARE * (2 * grep->bytes + GREP_AHEAD), SHARE);
	workload_ready(&grep->w);
	for (uint64_t pass = 0; pass < grep->repeat; pass++) {
		for (size_t i = 0; i < n; i++)
			team.workers[i].matches.n = 0;
		team.next = 0;
		in_parallel(n, work_alone, &team);
	}
	for (size_t i = 0; i < n; i++)
		matches_add(&matches, team.workers[i].matches.values, team.workers[i].matches.n);
	write_result(grep, &matches);
	return host_seconds(grep->w.started);
}

static double run_cpu(void *program)
{
	struct grep *grep = program;
	struct matches matches = {0};

	workload_ready(&grep->w);
	corpus_search_all(&grep->corpus, &matches);
	write_result(grep, &matches);
	free(matches.values);
	return host_seconds(grep->w.started);
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

/* Of all passes but the last one, whose matches are in the file. */
static void check_counts(const struct grep *grep, CUdeviceptr device)
{
	uint64_t wanted = (grep->repeat - 1) * grep->wanted_matches.n;
	struct grep_job job;

	CU(cuMemcpyDtoH(&job, device, sizeof(job)));
	if (job.before != wanted)
		workload_fail("%u matches in the passes before the last one, not %" PRIu64,
			      job.before, wanted);
}

static double run_loop(void *program)
{
	struct grep *grep = program;
	const struct weir_loop_options options = {.blocks = (uint32_t)grep->blocks,
						  .threads = GREP_THREADS,
						  /* and the one that runs, and the end */
						  .callbacks = (uint32_t)grep->slots + 2,
						  .staging = (uint32_t)grep->staging,
						  .readers = (uint32_t)grep->readers,
						  .spin_us = (uint32_t)grep->spin,
						  .name = "grep"};
	struct grep_job job = {.length = grep->length,
			       .files = grep->corpus.files,
			       .slots = (uint32_t)grep->slots,
			       .passes = (uint32_t)grep->repeat,
			       .most = MATCHES_MAX,
			       .paths = paths(&grep->corpus)};
	CUdeviceptr device = host_zeros(sizeof(job)), chunks, matches;
	struct weir_loop_stats stats;
	struct weir_loop *loop;
	double seconds;

	memcpy(job.word, grep->corpus.word, grep->length);
	memcpy(job.result, grep->result, sizeof(job.result));
	CU(cuModuleLoadData(&grep->w.module, grep->loop_ptx));
	loop = host_loop(workload_kernel(&grep->w, "grep_loop"), &options);
	weir_loop_stats(loop, &stats);
	CU(cuMemAlloc(&chunks, (size_t)stats.blocks * grep->slots * (GREP_CHUNK + GREP_AHEAD)));
	CU(cuMemAlloc(&matches, MATCHES_MAX * sizeof(struct grep_match)));
	job.chunks = chunks;
	job.matches = matches;
	workload_upload(device, &job, sizeof(job));
	workload_ready(&grep->w);
	seconds = host_loop_run(loop, (void *[]){NULL, &device});
	host_loop_end(loop);
	check_counts(grep, device);
	return seconds;
}

static const struct host_way ways[] = {{"cpu", run_cpu},
				       {"native", run_native},
				       {"split", run_split},
				       {"parallel", run_parallel},
				       {"loop", run_loop}};

static const struct host_way *parse(struct grep *grep, int argc, char **argv)
{
	const struct workload_option own[] = {
		{"folder", OPTION_TEXT, &grep->corpus.folder, "for the files; they are made"},
		{"way", OPTION_TEXT, &grep->way, "cpu, native, split, parallel or loop (default)"},
		{"bytes", OPTION_NUMBER, &grep->bytes, "of a file, on average"},
		{"word", OPTION_TEXT, &grep->corpus.word, "to be found"},
		{"blocks", OPTION_NUMBER, &grep->blocks, "of the loop; default: as many as fit"},
		{"slots", OPTION_NUMBER, &grep->slots, "files of a block of the loop at a time"},
		{"repeat", OPTION_NUMBER, &grep->repeat, "passes of the loop, or in parallel"},
		{"readers", OPTION_NUMBER, &grep->readers,
		 "threads of the loop that read; default: the library's"},
		{"staging", OPTION_NUMBER, &grep->staging,
		 "buffers of the loop, of 1 MiB; 0: the library's"},
		{"spin", OPTION_NUMBER, &grep->spin, HOST_SPIN_HELP},
		{"result", OPTION_TEXT, &grep->wanted,
		 "a file, which stays; default: one in the folder"},
		{"leaving", OPTION_FLAG, &grep->leaving, HOST_LEAVING_HELP},
		{0}};

	workload_parse(&grep->w, argc, argv, "finds a word; --size: number of files", own);
	bool is_loop = strcmp(grep->way, "loop") == 0;
	grep->bytes = workload_pick(&grep->w, grep->bytes, 20000, 1u << 20);
	grep->corpus.files = (uint32_t)workload_pick(&grep->w, grep->w.size, 12, 512);
	grep->length = (uint32_t)strnlen(grep->corpus.word, GREP_WORD);
	if (!grep->corpus.folder || grep->length < 2 || grep->length >= GREP_WORD ||
	    grep->slots < 1 || grep->slots > 15 || grep->bytes > 1u << 28 || grep->bytes < 64 ||
	    grep->repeat < 1 || grep->repeat > REPEAT_MAX || grep->readers > READERS_MAX ||
	    grep->staging > STAGING_MAX || grep->spin > HOST_SPIN_US ||
	    (!is_loop && grep->leaving) ||
	    (!is_loop && strcmp(grep->way, "parallel") != 0 && grep->repeat > 1) ||
	    grep->corpus.files < 1 || grep->corpus.files > 1u << 20) {
		fprintf(stderr, "loop-grep: --folder: needed; the others: out of range\n");
		exit(2);
	}
	return host_way_find(ways, countof(ways), grep->way);
}

int main(int argc, char **argv)
{
	static struct grep grep = {.w = {.seed = 1},
				   .corpus = {.word = "needle"},
				   .slots = 4,
				   .repeat = 1,
				   .spin = HOST_SPIN_US,
				   .staging = STAGING,
				   .way = "loop",
				   .loop_ptx = grep_loop_ptx};
	const struct host_way *way = parse(&grep, argc, argv);
	struct matches *wanted = &grep.wanted_matches;
	double seconds, leaving_us = 0;

	if (grep.wanted)
		snprintf(grep.result, sizeof(grep.result), "%s", grep.wanted);
	else
		snprintf(grep.result, sizeof(grep.result), "%.200s/result-%d", grep.corpus.folder,
			 getpid());
	corpus_make(&grep.corpus, grep.w.seed, (uint32_t)grep.bytes);
	corpus_search_all(&grep.corpus, wanted);
	workload_open(&grep.w, grep_ptx);
	seconds = way->run(&grep);
	if (grep.leaving) {
		grep.loop_ptx = grep_loop_leaving_ptx;
		(void)way->run(&grep);
		leaving_us = host_leaving_us(grep.w.module);
	}
	corpus_check(grep.result, wanted);
	if (!grep.wanted)
		unlink(grep.result);
	printf("{\"way\":\"%s\",\"files\":%u,\"bytes\":%zu,\"passes\":%" PRIu64
	       ",\"matches\":%zu,\"seconds\":%.6f,\"leaving_us\":%.1f}\n",
	       way->name, grep.corpus.files, total(&grep.corpus), grep.repeat, wanted->n, seconds,
	       leaving_us);
	return 0;
}
