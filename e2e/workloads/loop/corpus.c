#include "corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/base.h>

#include "../parallel.h"

#define APART 3000 /* bytes from one planted word to the next, on average */

void corpus_path(const struct corpus *corpus, uint32_t file, char *path)
{
	if (snprintf(path, GREP_PATH, "%s/text-%u", corpus->folder, file) >= (int)GREP_PATH)
		workload_fail("%s: the path is too long", corpus->folder);
}

static void write_whole(const char *path, const void *data, size_t size)
{
	cleanup(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		workload_fail("%s: %s", path, strerror(errno));
}

static void fill(struct random *random, const char *word, uint32_t length, uint8_t *text,
		 uint32_t size)
{
	static const char letters[] = "etaoin shrdlu\ncmfwypv";

	for (uint32_t i = 0; i < size; i++)
		text[i] = (uint8_t)letters[random_below(random, sizeof(letters) - 1)];
	for (uint32_t at = random_below(random, APART); at + length <= size;
	     at += length + random_below(random, 2 * APART))
		memcpy(text + at, word, length);
}

void corpus_make(struct corpus *corpus, uint64_t seed, uint32_t bytes)
{
	cleanup(freep) uint8_t *text = workload_alloc(2 * (size_t)bytes);
	struct random random = {seed};
	char path[GREP_PATH];
	struct stat stat_of;

	corpus->sizes = workload_alloc(corpus->files * sizeof(*corpus->sizes));
	for (uint32_t i = 0; i < corpus->files; i++) {
		uint32_t size = bytes / 2 + random_below(&random, bytes);
		struct random of_file = {random_next(&random)};

		corpus->sizes[i] = size;
		corpus_path(corpus, i, path);
		if (stat(path, &stat_of) == 0 && stat_of.st_size == (off_t)size)
			continue;
		fill(&of_file, corpus->word, (uint32_t)strlen(corpus->word), text, size);
		write_whole(path, text, size);
	}
}

void corpus_read(const struct corpus *corpus, uint32_t file, uint8_t *text)
{
	char path[GREP_PATH];
	size_t done = 0, size = corpus->sizes[file];

	corpus_path(corpus, file, path);
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && done < size) {
		ssize_t n = read(fd, text + done, size - done);

		if (n <= 0)
			workload_fail("%s: %s", path, n ? strerror(errno) : "too short");
		done += (size_t)n;
	}
	if (fd < 0)
		workload_fail("%s: %s", path, strerror(errno));
}

void matches_add(struct matches *matches, const struct grep_match *more, size_t n)
{
	if (matches->n + n > matches->capacity) {
		matches->capacity = 2 * (matches->n + n) + 1024;
		matches->values =
			realloc(matches->values, matches->capacity * sizeof(*matches->values));
		if (!matches->values)
			workload_fail("out of memory");
	}
	memcpy(matches->values + matches->n, more, n * sizeof(*more));
	matches->n += n;
}

void corpus_search(const struct corpus *corpus, uint32_t file, const uint8_t *text,
		   struct matches *matches)
{
	const uint8_t *at = text, *end = text + corpus->sizes[file];
	size_t length = strlen(corpus->word);

	while ((at = memmem(at, (size_t)(end - at), corpus->word, length))) {
		matches_add(matches, &(struct grep_match){file, (uint32_t)(at - text)}, 1);
		at++;
	}
}

struct search {
	const struct corpus *corpus;
	struct matches *matches;
	pthread_mutex_t lock;
};

static void search_one(void *context, size_t file)
{
	struct search *search = context;
	cleanup(freep) uint8_t *text = workload_alloc(search->corpus->sizes[file]);
	struct matches mine = {0};

	corpus_read(search->corpus, (uint32_t)file, text);
	corpus_search(search->corpus, (uint32_t)file, text, &mine);
	pthread_mutex_lock(&search->lock);
	if (mine.n)
		matches_add(search->matches, mine.values, mine.n);
	pthread_mutex_unlock(&search->lock);
	free(mine.values);
}

void corpus_search_all(const struct corpus *corpus, struct matches *matches)
{
	struct search search = {corpus, matches, PTHREAD_MUTEX_INITIALIZER};

	in_parallel(corpus->files, search_one, &search);
}

static int compare(const void *a, const void *b)
{
	const struct grep_match *left = a, *right = b;

	if (left->file != right->file)
		return left->file < right->file ? -1 : 1;
	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

static void sort(struct matches *matches)
{
	if (matches->n)
		qsort(matches->values, matches->n, sizeof(*matches->values), compare);
}

void corpus_check(const char *path, struct matches *wanted)
{
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t bytes = wanted->n * sizeof(*wanted->values);
	struct matches found = {.values = workload_alloc(bytes + 1), .n = wanted->n};
	ssize_t n = fd < 0 ? -1 : read(fd, found.values, bytes + 1);

	if (n != (ssize_t)bytes)
		workload_fail("%s: %zd bytes, not %zu", path, n, bytes);
	sort(&found);
	sort(wanted);
	for (size_t i = 0; i < wanted->n; i++)
		if (compare(&found.values[i], &wanted->values[i]) != 0)
			workload_fail("%s: match %zu is at %u of file %u, not at %u of file %u",
				      path, i, found.values[i].offset, found.values[i].file,
				      wanted->values[i].offset, wanted->values[i].file);
	free(found.values);
}
