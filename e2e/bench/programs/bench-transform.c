/* bench-transform FILE.ptx... [MEGABYTES]: a module of that size, one of a tenth and one of a
 * hundredth, made of the files and of generated kernels. How fast it is read, and rewritten in each
 * form and in all (seconds of the CPU), and how much memory that takes: each in a process of its
 * own, three times where that is soon done.
 */
#include "corpus.h"

#include "weir/transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX 64
#define FILE_MAX  (8u << 20)
#define RUNS      3
#define LONG_S    4.0 /* a run of this length is not repeated */

#define SLICED     (1u << WEIR_SLICED)
#define PERSISTENT (1u << WEIR_PERSISTENT)
#define RESUMABLE  (1u << WEIR_RESUMABLE)

static const struct {
	const char *name;
	unsigned forms;
} runs[] = {
	{"read", 0},
	{"sliced", SLICED},
	{"persistent", PERSISTENT},
	{"resumable", RESUMABLE},
	{"all", SLICED | PERSISTENT | RESUMABLE},
};

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, FILE_MAX);

	if (!file || !text || !fread(text, 1, FILE_MAX - 1, file)) {
		free(text);
		text = NULL;
	}
	if (file)
		fclose(file);
	return text;
}

static void count(void *data, const struct weir_verdict *verdict)
{
	unsigned *eligible = data;

	*eligible += verdict->eligible;
}

static long peak_megabytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss / 1024;
}

static int measure(const struct corpus *corpus, const char *name, unsigned forms)
{
	unsigned eligible = 0;
	struct weir_transform_options options = {
		.forms = forms, .verdict = count, .data = &eligible};
	struct weir_error error = {0};
	long before = peak_megabytes();
	double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID), took, in = (double)corpus->len / 1e6;
	size_t len = 0;
	char *out = NULL;
	int r = weir_transform(&out, &len, corpus->text, corpus->len, &options, &error);

	took = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
	if (r)
		printf("%s line %u: %s\n", name, error.line, error.message);
	else
		printf("%s/%.1fMB %.2f MB/s: %.3f s, %.1f MB out, %ld MB of memory, %u kernels, "
		       "%u rewritten\n",
		       name, in, in / took, took, (double)len / 1e6, peak_megabytes() - before,
		       corpus->kernels, eligible);
	fflush(stdout);
	free(out);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Each run is a process, so that memory of one does not help the next. */
static int measure_apart(const struct corpus *corpus, const char *name, unsigned forms)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(measure(corpus, name, forms));
	if (child > 0)
		waitpid(child, &status, 0);
	return status;
}

static int measure_often(const struct corpus *corpus, const char *name, unsigned forms)
{
	double begin = seconds_of(CLOCK_MONOTONIC);
	int failed = 0;

	for (unsigned i = 0; i < RUNS && !failed; i++) {
		failed = measure_apart(corpus, name, forms);
		if (seconds_of(CLOCK_MONOTONIC) - begin > LONG_S)
			break;
	}
	return failed;
}

static int measure_size(const char *const *texts, size_t n, size_t size)
{
	struct corpus corpus;
	int failed = corpus_make(&corpus, texts, n, size);

	for (size_t k = 0; !failed && k < sizeof(runs) / sizeof(runs[0]); k++)
		failed = measure_often(&corpus, runs[k].name, runs[k].forms);
	free(corpus.text);
	return failed;
}

int main(int argc, char **argv)
{
	size_t size = 50u << 20, n = 0;
	char *texts[FILES_MAX];
	int failed = 0;

	for (int k = 1; k < argc && n < FILES_MAX; k++) {
		size_t digits = strspn(argv[k], "0123456789");

		if (digits && !argv[k][digits])
			size = strtoul(argv[k], NULL, 10) << 20;
		else if ((texts[n] = read_file(argv[k])))
			n++;
		else
			fprintf(stderr, "bench-transform: %s cannot be read\n", argv[k]);
	}
	if (!n) {
		fprintf(stderr, "usage: %s FILE.ptx... [MEGABYTES]\n", argv[0]);
		return 1;
	}
	for (unsigned part = 100; part && !failed; part /= 10)
		failed = measure_size((const char *const *)texts, n, size / part);
	while (n)
		free(texts[--n]);
	return failed ? 1 : 0;
}
