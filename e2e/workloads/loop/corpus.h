/* Files of text with a word here and there, and where the word is. */
#pragma once

#include "../workload.h"
#include "grep-job.h"

struct corpus {
	const char *folder;
	uint32_t files;
	uint32_t *sizes; /* bytes of each */
	const char *word;
};

/* Writes the files, unless they are there. The same seed, number and size: the same files. */
void corpus_make(struct corpus *corpus, uint64_t seed, uint32_t bytes);

/* @path: GREP_PATH bytes. */
void corpus_path(const struct corpus *corpus, uint32_t file, char *path);

/* Reads the file into @text, which has room for its bytes. */
void corpus_read(const struct corpus *corpus, uint32_t file, uint8_t *text);

/* Matches in no order. */
struct matches {
	struct grep_match *values;
	size_t n, capacity;
};
void matches_add(struct matches *matches, const struct grep_match *more, size_t n);

/* Searches one file in memory. */
void corpus_search(const struct corpus *corpus, uint32_t file, const uint8_t *text,
		   struct matches *matches);

/* Searches all files on the CPU, on all processors. */
void corpus_search_all(const struct corpus *corpus, struct matches *matches);

/* Ends the program unless the file at @path has exactly the matches @wanted, in any order. */
void corpus_check(const char *path, struct matches *wanted);
