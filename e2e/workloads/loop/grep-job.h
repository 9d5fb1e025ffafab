/* A search for a word in many files: shared by device code and host. */
#pragma once

#include <stdint.h>

#define GREP_PATH    256u        /* bytes of a path, with its end */
#define GREP_WORD    32u         /* bytes of the word, at most */
#define GREP_CHUNK   (2u << 20)  /* bytes that a loop reads at once: mostly a whole file */
#define GREP_PIECE   (16u << 10) /* bytes that a block searches without a scheduling point */
#define GREP_AHEAD   16u         /* bytes behind a text that can be read, too */
#define GREP_THREADS 256

/* A match, as it stands in the result file. */
struct grep_match {
	uint32_t file, offset;
};

struct grep_job {
	char word[GREP_WORD];
	char result[GREP_PATH]; /* path of the result file */
	uint32_t length;        /* of the word */
	uint32_t files, slots;  /* slots: files that a block reads at a time */
	uint32_t passes;        /* over all files; the matches of the last one are kept */
	uint32_t ticket;        /* the next file: number ticket % files, in pass ticket / files */
	uint32_t done;          /* files that are searched, in all passes */
	uint32_t found, most;   /* matches of the last pass; as many fit */
	uint32_t before;        /* matches of the other passes */
	uint64_t paths;         /* device addresses: paths[files][GREP_PATH], */
	uint64_t matches;       /* struct grep_match[most], */
	uint64_t chunks;        /* GREP_CHUNK + GREP_AHEAD bytes for each slot of each block */
};
