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

/* The numbers of the tokens of document @n, the @bytes of @text, up to TOKENS_DOC, with TOKEN_PAD behind
 * them. The letters are read from shared memory: each is needed several times, one after the other. */
static __device__ void number(const token_job &job, unsigned n, const uint8_t *text, uint64_t bytes)
{
	__shared__ uint8_t letters[TOKENS_DOC];
	unsigned size = bytes < TOKENS_DOC ? bytes : TOKENS_DOC;
	unsigned slice = (size + TOKENS_THREADS - 1) / TOKENS_THREADS;
	unsigned from = min(threadIdx.x * slice, size), to = min(from + slice, size), mine = 0;

	for (unsigned i = threadIdx.x; i < size; i += TOKENS_THREADS)
		letters[i] = text[i];
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

/* The rows of the table of @count tokens of document @n, which the block is at, from number @first on, to
 * the tensor: a row by each warp. Nothing reads the tensor here, so it is to leave the L2 cache before the
 * table does. */
static __device__ void embed(const token_job &job, unsigned n, unsigned first, unsigned count)
{
	const unsigned *numbers = numbers_here() + first;
	const unsigned quads = job.dimension / 4, lane = threadIdx.x % 32;
	const float4 *__restrict__ table = reinterpret_cast<const float4 *>(job.table);
	float4 *__restrict__ tensor = reinterpret_cast<float4 *>(job.tensor) + (size_t(n) * TOKENS_ROW + first) * quads;

	for (unsigned i = threadIdx.x / 32; i < count; i += TOKENS_THREADS / 32) {
		const float4 *from = table + size_t(numbers[i]) * quads;
		float4 *to = tensor + size_t(i) * quads;

#pragma unroll 2
		for (unsigned q = lane; q < quads; q += 32)
			__stcs(to + q, __ldg(from + q));
	}
}

}
