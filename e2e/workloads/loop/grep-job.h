/* A search for a word in many files: shared by device code and host. */
#pragma once

#include <stdint.h>

#define GREP_PATH    256u         /* bytes of a path, with its end */
#define GREP_WORD    32u          /* bytes of the word, at most */
#define GREP_CHUNK   (256u << 10) /* bytes that are read at once */
#define GREP_MATCHES 4096u        /* in a chunk, at most */
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
	uint32_t ticket;        /* the next file */
	uint32_t matches;       /* in the result file so far, or about to be written */
	int32_t output;         /* -1: not open yet */
	uint64_t paths;         /* device addresses: paths[files][GREP_PATH] */
	uint64_t slots_at;      /* of struct grep_slot, @slots for each block */
};

/* A file that is being read. */
struct grep_slot {
	uint32_t found; /* in the chunk */
	uint32_t unused[3];
	uint8_t chunk[GREP_CHUNK];
	struct grep_match matches[GREP_MATCHES];
};
