/* Makes a file of documents and turns it into a tensor, in one of four ways:
 *
 *   cpu     all processors
 *   native  a thread reads the file into pinned memory and copies it to the GPU; one launch
 *   parallel  each processor reads some documents, copies them and launches, by itself
 *   loop    an event loop on the GPU reads the documents
 *
 * A first round loads the kernel, and is not measured; the others are (--iterations), and the
 * median counts. The token numbers and the tensor are compared with the CPU's. Prints a line of
 * JSON. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base.h>

#include "../parallel.h"
#include "host.h"
#include "pipeline.h"

#define WORD_LETTERS  9  /* of a word, at most */
#define KNOWN_PART    16 /* one of so many words is not in the vocabulary */
#define PLACES_EACH   2  /* of the vocabulary's table, for a word */
#define COMPARE_PIECE ((size_t)256 << 20)

struct texts {
	struct workload w;
	const char *folder, *way;
	bool leaving;
	char path[256];
	uint64_t words, blocks; /* words of the vocabulary */
	struct pipeline pipeline;
	char *text;
	uint64_t *offsets;
	struct token_entry *vocabulary;
	float *table, *tensor;
	uint32_t *numbers;
};

/* Word @i in letters, with its end: the same for the same number, others for others. */
static void spell(uint64_t i, char *word)
{
	struct random random = {i};
	uint64_t rest = random_next(&random);
	int n = 0;

	for (; i || n == 0; i /= 26)
		word[n++] = (char)('a' + i % 26);
	for (; n < 3 || (n < WORD_LETTERS - 1 && rest & 1); rest >>= 3)
		word[n++] = (char)('A' + rest / 8 % 26);
	word[n] = '\0';
}

static uint64_t hash_of(const char *word)
{
	uint64_t hash = TOKEN_HASH_FIRST;

	for (; *word; word++)
		hash = TOKEN_HASH_NEXT(hash, *word | 32);
	return hash;
}

static void make_vocabulary(struct texts *texts)
{
	uint32_t mask = texts->pipeline.vocabulary_mask;

	texts->vocabulary = calloc(mask + 1ull, sizeof(*texts->vocabulary));
	for (uint64_t i = 0; texts->vocabulary && i < texts->words; i++) {
		char word[32];
		uint32_t at;

		spell(i, word);
		at = (uint32_t)hash_of(word) & mask;
		while (texts->vocabulary[at].hash && texts->vocabulary[at].hash != hash_of(word))
			at = (at + 1) & mask;
		texts->vocabulary[at] =
			(struct token_entry){hash_of(word), TOKEN_UNKNOWN + 1 + (uint32_t)i, 0};
	}
}

/* Documents of 5 to 2 * TOKENS_ROW words. */
static void make_text(struct texts *texts)
{
	struct random random = {texts->w.seed};
	uint32_t documents = texts->pipeline.documents;
	char *at = texts->text = workload_alloc((size_t)documents * TOKENS_DOC);

	texts->offsets = workload_alloc((documents + 1ull) * sizeof(*texts->offsets));
	for (uint32_t d = 0; d < documents; d++) {
		uint32_t count = 5 + random_below(&random, 2 * TOKENS_ROW - 5);

		texts->offsets[d] = (uint64_t)(at - texts->text);
		for (uint32_t i = 0; i < count; i++) {
			bool is_known = random_below(&random, KNOWN_PART);
			uint64_t word = random_below(&random, (uint32_t)texts->words);

			spell(is_known ? word : texts->words + word, at);
			at += strlen(at);
			*at++ = ", \n7"[random_below(&random, 4)];
		}
	}
	texts->offsets[documents] = (uint64_t)(at - texts->text);
}

static void write_text(const struct texts *texts)
{
	cleanup(closep) int fd = open(texts->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t size = texts->offsets[texts->pipeline.documents];

	for (size_t done = 0; done < size;) {
		ssize_t n = fd < 0 ? -1 : write(fd, texts->text + done, size - done);

		if (n <= 0)
			workload_fail("%s: %s", texts->path, strerror(errno));
		done += (size_t)n;
	}
}

static uint32_t look_up(const struct texts *texts, uint64_t hash)
{
	uint32_t mask = texts->pipeline.vocabulary_mask, at = (uint32_t)hash & mask;

	for (; texts->vocabulary[at].hash; at = (at + 1) & mask)
		if (texts->vocabulary[at].hash == hash)
			return texts->vocabulary[at].number;
	return TOKEN_UNKNOWN;
}

static void number_document(void *context, size_t d)
{
	struct texts *texts = context;
	uint32_t *numbers = texts->numbers + d * TOKENS_ROW, n = 0;
	const char *at = texts->text + texts->offsets[d],
		   *end = texts->text + texts->offsets[d + 1];

	while (at < end && n < TOKENS_ROW) {
		uint64_t hash = TOKEN_HASH_FIRST;
		const char *begin;

		while (at < end && !TOKEN_IS_LETTER(*at))
			at++;
		for (begin = at; at < end && TOKEN_IS_LETTER(*at); at++)
			hash = TOKEN_HASH_NEXT(hash, *at | 32);
		if (at > begin)
			numbers[n++] = look_up(texts, hash);
	}
	while (n < TOKENS_ROW)
		numbers[n++] = TOKEN_PAD;
}

static void embed_document(void *context, size_t d)
{
	struct texts *texts = context;
	size_t row = texts->pipeline.dimension;

	number_document(texts, d);
	for (size_t i = d * TOKENS_ROW; i < (d + 1) * TOKENS_ROW; i++)
		memcpy(texts->tensor + i * row, texts->table + texts->numbers[i] * row,
		       row * sizeof(float));
}

static double on_cpu(struct texts *texts)
{
	const struct pipeline *pipeline = &texts->pipeline;
	size_t cells = (size_t)pipeline->documents * TOKENS_ROW;
	uint64_t began;

	texts->tensor = workload_alloc(cells * pipeline->dimension * sizeof(*texts->tensor));
	/* The first time touches the memory. */
	in_parallel(pipeline->documents, embed_document, texts);
	began = now_ns();
	in_parallel(pipeline->documents, embed_document, texts);
	return host_seconds(began);
}

static CUdeviceptr uploaded(const void *data, size_t bytes)
{
	CUdeviceptr device;

	CU(cuMemAlloc(&device, bytes));
	workload_upload(device, data, bytes);
	return device;
}

/* What the GPU has, a piece at a time, in units of which each must be equal to what @wanted says.
 */
struct comparison {
	const struct texts *texts;
	const void *(*wanted)(const struct texts *texts, size_t unit);
	size_t unit; /* its bytes */
	const uint8_t *found;
	size_t first; /* unit of @found */
	const char *what;
};

static const void *numbers_wanted(const struct texts *texts, size_t document)
{
	return texts->numbers + document * TOKENS_ROW;
}

static const void *row_wanted(const struct texts *texts, size_t token)
{
	return texts->table + (size_t)texts->numbers[token] * texts->pipeline.dimension;
}

static void compare_unit(void *context, size_t i)
{
	const struct comparison *piece = context;
	const void *wanted = piece->wanted(piece->texts, piece->first + i);

	if (memcmp(piece->found + i * piece->unit, wanted, piece->unit) != 0)
		workload_fail("tokens: %s: wrong", piece->what);
}

/* @n units at @device. */
static void compare(CUdeviceptr device, size_t n, struct comparison piece)
{
	size_t most = COMPARE_PIECE / piece.unit;
	struct crew *crew = crew_new();
	void *found;

	CU(cuMemHostAlloc(&found, smaller(most, n) * piece.unit, 0));
	piece.found = found;
	for (; piece.first < n; piece.first += most) {
		size_t units = smaller(most, n - piece.first);

		CU(cuMemcpyDtoH(found, device + piece.first * piece.unit, units * piece.unit));
		crew_run(crew, units, compare_unit, &piece);
	}
	CU(cuMemFreeHost(found));
	crew_free(crew);
}

static double on_gpu(struct texts *texts, enum pipeline_way way)
{
	struct pipeline *pipeline = &texts->pipeline;
	size_t cells = (size_t)pipeline->documents * TOKENS_ROW,
	       row = pipeline->dimension * sizeof(float);
	double seconds;

	pipeline->path = texts->path;
	pipeline->blocks = (uint32_t)texts->blocks;
	pipeline->rounds = (uint32_t)workload_pick(&texts->w, texts->w.iterations, 1, 10);
	pipeline->offsets =
		uploaded(texts->offsets, (pipeline->documents + 1ull) * sizeof(uint64_t));
	pipeline->vocabulary = uploaded(texts->vocabulary, (pipeline->vocabulary_mask + 1ull) *
								   sizeof(struct token_entry));
	pipeline->table = uploaded(texts->table, (texts->words + 2) * row);
	pipeline->numbers = host_zeros(cells * sizeof(uint32_t));
	pipeline->tensor = host_zeros(cells * row);
	seconds = pipeline_run(pipeline, way);
	in_parallel(pipeline->documents, number_document, texts);
	compare(pipeline->numbers, pipeline->documents,
		(struct comparison){texts, numbers_wanted, TOKENS_ROW * sizeof(uint32_t),
				    .what = "numbers"});
	compare(pipeline->tensor, cells,
		(struct comparison){texts, row_wanted, row, .what = "tensor"});
	for (size_t i = 0; i < 5; i++)
		CU(cuMemFree((const CUdeviceptr[]){pipeline->offsets, pipeline->vocabulary,
						   pipeline->table, pipeline->numbers,
						   pipeline->tensor}[i]));
	return seconds;
}

static const struct way {
	const char *name;
	bool on_gpu;
	enum pipeline_way way;
} ways[] = {{.name = "cpu"},
	    {"native", true, PIPELINE_NATIVE},
	    {"parallel", true, PIPELINE_PARALLEL},
	    {"loop", true, PIPELINE_LOOP}};

static const struct way *way_find(const char *name)
{
	for (size_t i = 0; i < countof(ways); i++)
		if (strcmp(name, ways[i].name) == 0)
			return &ways[i];
	return NULL;
}

static const struct way *parse(struct texts *texts, int argc, char **argv)
{
	uint64_t dimension = 0;
	const struct workload_option own[] = {
		{"folder", OPTION_TEXT, &texts->folder, "for the file"},
		{"way", OPTION_TEXT, &texts->way, "cpu, native, parallel or loop (default)"},
		{"words", OPTION_NUMBER, &texts->words, "of the vocabulary"},
		{"dimension", OPTION_NUMBER, &dimension, "of the table"},
		{"blocks", OPTION_NUMBER, &texts->blocks, "of the loop; default: as many as fit"},
		{"leaving", OPTION_FLAG, &texts->leaving, HOST_LEAVING_HELP},
		{0}};
	struct pipeline *pipeline = &texts->pipeline;
	const struct way *way;
	uint32_t places = 1;

	workload_parse(&texts->w, argc, argv, "turns text into a tensor; --size: documents", own);
	pipeline->documents = (uint32_t)workload_pick(&texts->w, texts->w.size, 150, 320000);
	pipeline->dimension = (uint32_t)workload_pick(&texts->w, dimension, 8, 256);
	texts->words = workload_pick(&texts->w, texts->words, 500, 50000);
	way = way_find(texts->way);
	if (!way || (texts->leaving && way->way != PIPELINE_LOOP) || !texts->folder ||
	    pipeline->dimension % 4 || pipeline->dimension > 4096 || texts->words > 1u << 24 ||
	    pipeline->documents > 1u << 24) {
		fprintf(stderr, "loop-tokens: --folder: needed; the others: see --help\n");
		exit(2);
	}
	while (places < PLACES_EACH * texts->words)
		places *= 2;
	pipeline->vocabulary_mask = places - 1;
	return way;
}

int main(int argc, char **argv)
{
	static struct texts texts = {.w = {.seed = 1}, .way = "loop"};
	struct pipeline *pipeline = &texts.pipeline;
	const struct way *way = parse(&texts, argc, argv);
	double seconds, leaving = 0;
	size_t cells = (size_t)pipeline->documents * TOKENS_ROW,
	       entries = (texts.words + 2) * pipeline->dimension;

	snprintf(texts.path, sizeof(texts.path), "%.200s/documents-%d", texts.folder, getpid());
	texts.numbers = workload_alloc(cells * sizeof(*texts.numbers));
	texts.table = workload_alloc(entries * sizeof(*texts.table));
	random_floats(&(struct random){texts.w.seed}, texts.table, entries, -1, 1);
	make_vocabulary(&texts);
	make_text(&texts);
	write_text(&texts);
	workload_open(&texts.w, NULL);
	workload_ready(&texts.w);
	seconds = way->on_gpu ? on_gpu(&texts, way->way) : on_cpu(&texts);
	if (texts.leaving)
		leaving = on_gpu(&texts, PIPELINE_LEAVING);
	unlink(texts.path);
	printf("{\"way\":\"%s\",\"documents\":%u,\"bytes\":%llu,\"seconds\":%.6f,"
	       "\"leaving_us\":%.1f}\n",
	       texts.way, pipeline->documents,
	       (unsigned long long)texts.offsets[pipeline->documents], seconds, leaving * 1e6);
	return 0;
}
