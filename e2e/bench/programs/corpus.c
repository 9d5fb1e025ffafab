#include "corpus.h"

#include "forms/generator/generate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD      ".version 9.0\n.target sm_75\n.address_size 64\n"
#define NAMES_MAX 512
#define GENERATED 64 /* different ones */

/* A text, and the names that it declares outside of bodies. */
struct source {
	const char *text;
	char *names[NAMES_MAX];
	size_t n;
	unsigned kernels;
};

static bool is_word(char c)
{
	return c && (strchr("_$%", c) || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		     (c >= 'A' && c <= 'Z'));
}

static size_t word_length(const char *at)
{
	size_t n = 0;

	while (is_word(at[n]))
		n++;
	return n;
}

static bool is_name(const char *at)
{
	return *at == '_' || *at == '$' || (is_word(*at) && *at > '9');
}

static bool knows(const struct source *s, const char *name, size_t len)
{
	for (size_t k = 0; k < s->n; k++)
		if (!strncmp(s->names[k], name, len) && !s->names[k][len])
			return true;
	return false;
}

/* Outside of braces and brackets, a name that is no directive is a declaration. */
static void find_names(struct source *s)
{
	size_t depth = 0, len;

	for (const char *at = s->text; *at; at += len) {
		len = word_length(at);
		depth += *at == '{' || *at == '(';
		depth -= (*at == '}' || *at == ')') && depth;
		s->kernels += !strncmp(at, ".entry ", 7);
		if (!depth && len && is_name(at) && at > s->text && at[-1] != '.' &&
		    s->n < NAMES_MAX && !knows(s, at, len))
			s->names[s->n++] = strndup(at, len);
		if (!strncmp(at, "//", 2))
			len = strcspn(at, "\n");
		len = len ? len : 1;
	}
}

/* Copies the text without its head, with a number behind its names. */
static void print_again(FILE *out, const struct source *s, unsigned number)
{
	static const char *const heads[] = {".version", ".target", ".address_size"};
	size_t len;

	for (const char *at = s->text; *at; at += len) {
		len = word_length(at);
		for (size_t k = 0; k < 3 && !len; k++)
			if (!strncmp(at, heads[k], strlen(heads[k])))
				len = strcspn(at, "\n") + 1;
		if (*at == '.' && len)
			continue;
		len = len ? len : 1;
		fwrite(at, 1, len, out);
		if (is_name(at) && (at == s->text || at[-1] != '.') && knows(s, at, len))
			fprintf(out, "_%u", number);
	}
	fputc('\n', out);
}

static void source_deinit(struct source *s)
{
	while (s->n)
		free(s->names[--s->n]);
}

static void print_all(FILE *out, struct corpus *corpus, const struct source *sources, size_t n,
		      size_t size)
{
	fputs(HEAD, out);
	for (unsigned k = 0; (size_t)ftell(out) < size && !ferror(out); k++) {
		print_again(out, &sources[k % n], k);
		corpus->kernels += sources[k % n].kernels;
	}
}

int corpus_make(struct corpus *corpus, const char *const *texts, size_t n, size_t size)
{
	struct source *sources = calloc(n + GENERATED, sizeof(*sources));
	struct generated generated[GENERATED] = {0};
	FILE *out = NULL;
	int r = -ENOMEM;

	*corpus = (struct corpus){.text = NULL};
	if (sources)
		out = open_memstream(&corpus->text, &corpus->len);
	for (size_t k = 0; out && k < n + GENERATED; k++) {
		if (k >= n)
			generate(&generated[k - n], k - n + 1);
		sources[k].text = k < n ? texts[k] : generated[k - n].ptx;
		find_names(&sources[k]);
	}
	if (out) {
		print_all(out, corpus, sources, n + GENERATED, size);
		r = ferror(out) ? -ENOMEM : 0;
		r = fclose(out) ? -ENOMEM : r;
	}
	for (size_t k = 0; sources && k < n + GENERATED; k++)
		source_deinit(&sources[k]);
	for (size_t k = 0; k < GENERATED; k++)
		free(generated[k].ptx);
	free(sources);
	return r;
}
