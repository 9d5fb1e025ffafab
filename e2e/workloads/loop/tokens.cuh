/* Tokens and rows of the table, by a block of TOKENS_THREADS threads. */
#pragma once

#include "token-job.h"

namespace tokens
{

static __device__ bool begins(const uint8_t *text, unsigned i)
{
	return TOKEN_IS_LETTER(text[i]) && (i == 0 || !TOKEN_IS_LETTER(text[i - 1]));
}

static __device__ unsigned number_of(const token_job &job, const uint8_t *text, unsigned size, unsigned i)
{
	const token_entry *vocabulary = reinterpret_cast<const token_entry *>(job.vocabulary);
	uint64_t hash = TOKEN_HASH_FIRST;

	for (; i < size && TOKEN_IS_LETTER(text[i]); i++)
		hash = TOKEN_HASH_NEXT(hash, text[i] | 32);
	for (unsigned at = hash & job.vocabulary_mask; vocabulary[at].hash; at = (at + 1) & job.vocabulary_mask)
		if (vocabulary[at].hash == hash)
			return vocabulary[at].number;
	return TOKEN_UNKNOWN;
}

/* Each thread has a slice of the text, in which @mine tokens begin: how many begin before it. */
static __device__ unsigned tokens_before(unsigned mine)
{
	__shared__ unsigned sums[TOKENS_THREADS / 32];
	unsigned lane = threadIdx.x % 32, before = mine;

	for (unsigned step = 1; step < 32; step *= 2) {
		unsigned other = __shfl_up_sync(~0u, before, step);
		before += lane >= step ? other : 0;
	}
	if (lane == 31)
		sums[threadIdx.x / 32] = before;
	__syncthreads();
	for (unsigned warp = 0; warp < threadIdx.x / 32; warp++)
		before += sums[warp];
	return before - mine;
}

/* The numbers of the document that the block is at: number() writes them, recall() reads them back. */
static __device__ unsigned *numbers_here()
{
	__shared__ unsigned numbers[TOKENS_ROW];

	return numbers;
}

/* The numbers of document @n, for good. */
static __device__ unsigned *numbers_of(const token_job &job, unsigned n)
{
	return reinterpret_cast<unsigned *>(job.numbers) + size_t(n) * TOKENS_ROW;
}

static __device__ void recall(const token_job &job, unsigned n)
{
	__syncthreads();
	for (unsigned i = threadIdx.x; i < TOKENS_ROW; i += TOKENS_THREADS)
		numbers_here()[i] = numbers_of(job, n)[i];
	__syncthreads();
}

/* Each thread reads several before it writes the first. */
static __device__ void read_letters(uint8_t *letters, const uint8_t *text, unsigned size)
{
	constexpr unsigned many = 4;
	uint8_t read[many];

	for (unsigned i = threadIdx.x; i < size; i += many * TOKENS_THREADS) {
#pragma unroll
		for (unsigned k = 0; k < many; k++)
			read[k] = text[min(i + k * TOKENS_THREADS, size - 1)];
#pragma unroll
		for (unsigned k = 0; k < many; k++)
			if (i + k * TOKENS_THREADS < size)
				letters[i + k * TOKENS_THREADS] = read[k];
	}
}

/* The numbers of the tokens of document @n, the @bytes of @text, up to TOKENS_DOC, with TOKEN_PAD behind
 * them. The letters are read from shared memory: each is needed several times, one after the other. */
static __device__ void number(const token_job &job, unsigned n, const uint8_t *text, uint64_t bytes)
{
	__shared__ uint8_t letters[TOKENS_DOC];
	unsigned size = bytes < TOKENS_DOC ? bytes : TOKENS_DOC;
	unsigned slice = (size + TOKENS_THREADS - 1) / TOKENS_THREADS;
	unsigned from = min(threadIdx.x * slice, size), to = min(from + slice, size), mine = 0;

	read_letters(letters, text, size);
	for (unsigned i = threadIdx.x; i < TOKENS_ROW; i += TOKENS_THREADS)
		numbers_here()[i] = TOKEN_PAD;
	__syncthreads();
	for (unsigned i = from; i < to; i++)
		mine += begins(letters, i);
	unsigned place = tokens_before(mine);

	for (unsigned i = from; i < to; i++)
		if (begins(letters, i) && place < TOKENS_ROW)
			numbers_here()[place++] = number_of(job, letters, size, i);
	__syncthreads();
	for (unsigned i = threadIdx.x; i < TOKENS_ROW; i += TOKENS_THREADS)
		numbers_of(job, n)[i] = numbers_here()[i];
}

/* Of @count tokens of document @n, which the block is at, from number @first on: the rows of the table, and
 * their places in the tensor. */
struct rows {
	const float4 *__restrict__ table;
	float4 *__restrict__ tensor;
	const unsigned *numbers;
	unsigned quads, count;
};

static __device__ rows rows_of(const token_job &job, unsigned n, unsigned first, unsigned count)
{
	unsigned quads = job.dimension / 4;

	return {reinterpret_cast<const float4 *>(job.table),
		reinterpret_cast<float4 *>(job.tensor) + (size_t(n) * TOKENS_ROW + first) * quads,
		numbers_here() + first, quads, count};
}

/* Quads of row @i from number @q on, each thread of a warp every 32nd. Nothing reads the tensor here, so it is
 * to leave the L2 cache before the table does. */
static __device__ void copy_row(const rows &rows, unsigned i, unsigned q)
{
	const float4 *__restrict__ from = rows.table + size_t(rows.numbers[i]) * rows.quads;
	float4 *__restrict__ to = rows.tensor + size_t(i) * rows.quads;

#pragma unroll 2
	for (; q < rows.quads; q += 32)
		__stcs(to + q, __ldg(from + q));
}

/* All of them: a row by each warp. */
static __device__ void embed(const rows &rows)
{
	for (unsigned i = threadIdx.x / 32; i < rows.count; i += TOKENS_THREADS / 32)
		copy_row(rows, i, threadIdx.x % 32);
}

}
