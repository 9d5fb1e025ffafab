/* Text to tensor: documents of a file become token numbers, and these rows of an embedding table.
 * Shared by device code and host.
 *
 * A token is a run of letters. Its number comes from a vocabulary: a table of hashes with open
 * addressing. A document has TOKENS_ROW places in the tensor: what is too long is cut, what is too
 * short is filled with TOKEN_PAD. */
#pragma once

#include <stdint.h>

#define TOKENS_ROW     64u   /* tokens of a document */
#define TOKENS_DOC     4096u /* bytes of a document, at most */
#define TOKENS_THREADS 128
/* Documents that a loop reads at once: TOKENS_WAVE chunks of so many, as many of twice as many, and
 * so on up to the most. So there is work soon, and few requests. */
#define TOKENS_LEAST   256u
#define TOKENS_MOST    2048u
#define TOKENS_WAVE    12u
#define TOKENS_READERS 16u /* blocks that read, at most */
#define TOKENS_ROWS    8u  /* rows that it copies without a scheduling point; divides TOKENS_ROW */
/* Callbacks of a block of a loop: a read, the one that runs, and the one that it posts. */
#define TOKENS_CALLBACKS 3
#define TOKEN_PAD        0u
#define TOKEN_UNKNOWN    1u

/* FNV-1a of the token's letters; 0 is a free place. */
#define TOKEN_HASH_FIRST              14695981039346656037ull
#define TOKEN_HASH_NEXT(hash, letter) (((hash) ^ (uint8_t)(letter)) * 1099511628211ull)
#define TOKEN_IS_LETTER(byte)         ((uint8_t)(((byte) | 32) - 'a') < 26)

struct token_entry {
	uint64_t hash;
	uint32_t number;
	uint32_t unused;
};

struct token_job {
	char path[256];
	uint32_t documents;
	uint32_t dimension;       /* floats of a row of the table; a multiple of 4 */
	uint32_t vocabulary_mask; /* its places - 1; their number is a power of two */
	uint32_t reads;           /* the next chunk to be read, */
	uint32_t drawn;           /* and the next document to be numbered */
	int32_t file;             /* of the loop: -1 until block 0 has opened it */
	/* Of the loop, in ns: it begins; its first read is answered, and its last one. */
	unsigned long long began, first_read, last_read;
	uint64_t offsets;    /* device addresses, like all below: uint64_t[documents + 1], places in
				the file */
	uint64_t vocabulary; /* struct token_entry[] */
	uint64_t table;      /* float[numbers][dimension] */
	uint64_t numbers;    /* uint32_t[documents][TOKENS_ROW] */
	uint64_t tensor;     /* float[documents][TOKENS_ROW][dimension] */
	uint64_t text;       /* of the loop: the file, */
	uint64_t read;       /* and int32_t of each chunk: -1 until it is there */
};
