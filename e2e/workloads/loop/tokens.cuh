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

/* Each thread has a slice of the text; @first: how many tokens begin before its slice. */
static __device__ unsigned tokens_before(unsigned mine)
{
	__shared__ unsigned counts[TOKENS_THREADS];
	unsigned before = 0;

	counts[threadIdx.x] = mine;
	__syncthreads();
	for (unsigned i = 0; i < threadIdx.x; i++)
		before += counts[i];
	__syncthreads();
	return before;
}

/* The numbers of the tokens of @text to @numbers, with TOKEN_PAD behind them. */
static __device__ void number(const token_job &job, const uint8_t *text, unsigned size, unsigned *numbers)
{
	unsigned slice = (size + TOKENS_THREADS - 1) / TOKENS_THREADS;
	unsigned from = min(threadIdx.x * slice, size), to = min(from + slice, size), mine = 0;

	for (unsigned i = threadIdx.x; i < TOKENS_ROW; i += TOKENS_THREADS)
		numbers[i] = TOKEN_PAD;
	for (unsigned i = from; i < to; i++)
		mine += begins(text, i);
	unsigned place = tokens_before(mine);

	for (unsigned i = from; i < to; i++)
		if (begins(text, i) && place < TOKENS_ROW)
			numbers[place++] = number_of(job, text, size, i);
	__syncthreads();
}

/* The numbers of document @n. */
static __device__ unsigned *numbers_of(const token_job &job, unsigned n)
{
	return reinterpret_cast<unsigned *>(job.numbers) + size_t(n) * TOKENS_ROW;
}

/* The rows of the table of @count tokens of document @n from number @first on, to the tensor. */
static __device__ void embed(const token_job &job, unsigned n, unsigned first, unsigned count)
{
	const unsigned *numbers = numbers_of(job, n) + first;
	unsigned quads = job.dimension / 4;
	const float4 *table = reinterpret_cast<const float4 *>(job.table);
	float4 *row = reinterpret_cast<float4 *>(job.tensor) + (size_t(n) * TOKENS_ROW + first) * quads;

	for (unsigned i = threadIdx.x; i < count * quads; i += TOKENS_THREADS)
		row[i] = table[size_t(numbers[i / quads]) * quads + i % quads];
}

}
