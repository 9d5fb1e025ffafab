/* bench-transform FILE.ptx [MEGABYTES]: a module of that size, made of the file's first kernel
 * under many names, in each form. Prints throughput, output, and the peak memory of the process so
 * far.
 */
#include "weir/transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define FILE_MAX (8u << 20)

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
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

/* The head of @ptx, and its first kernel as often as it takes. */
static char *make_module(const char *ptx, size_t size, size_t *len)
{
	const char *kernel = strstr(ptx, ".visible .entry "),
		   *end = kernel ? strstr(kernel, "\n}") : NULL;
	const char *name = kernel ? kernel + strlen(".visible .entry ") : NULL, *behind;
	char *text = malloc(size + FILE_MAX);

	if (!end || !text) {
		free(text);
		return NULL;
	}
	behind = strchr(name, '(');
	memcpy(text, ptx, *len = (size_t)(kernel - ptx));
	for (unsigned k = 0; *len < size; k++) {
		*len += (size_t)sprintf(text + *len, ".visible .entry k%u", k);
		memcpy(text + *len, behind, (size_t)(end + 2 - behind));
		*len += (size_t)(end + 2 - behind);
		text[(*len)++] = '\n';
	}
	return text;
}

static void measure(const char *text, size_t len, unsigned forms, bool reprint, const char *what)
{
	struct weir_transform_options options = {.forms = forms, .reprint = reprint};
	struct weir_error error = {0};
	struct rusage usage;
	double begin = seconds(), took;
	size_t out_len = 0;
	char *out = NULL;
	int r = weir_transform(&out, &out_len, text, len, &options, &error);

	took = seconds() - begin;
	getrusage(RUSAGE_SELF, &usage);
	if (r)
		printf("%-12s line %u: %s\n", what, error.line, error.message);
	else
		printf("%-12s %6.1f MB in, %6.1f MB out, %7.3f s, %6.1f MB/s, peak %5ld MB\n", what,
		       (double)len / 1e6, (double)out_len / 1e6, took, (double)len / 1e6 / took,
		       usage.ru_maxrss / 1024);
	free(out);
}

int main(int argc, char **argv)
{
	size_t len, megabytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 50;
	char *ptx = argc > 1 ? read_file(argv[1]) : NULL;
	char *text = ptx ? make_module(ptx, megabytes << 20, &len) : NULL;

	if (!text) {
		fprintf(stderr, "usage: %s FILE.ptx [MEGABYTES]\n", argv[0]);
		return 1;
	}
	measure(text, len, 0, false, "read");
	measure(text, len, 0, true, "reprint");
	for (unsigned form = WEIR_SLICED; form < WEIR_FORM_COUNT; form++)
		measure(text, len, 1u << form, false, weir_form_name((enum weir_form)form));
	free(text);
	free(ptx);
	return 0;
}
