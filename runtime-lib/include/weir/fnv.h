/* FNV-1a: finds damage and tells things apart; no protection against forgery. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

/* Goes on from @of; FNV_BASIS at first. */
static inline uint64_t fnv_bytes(uint64_t of, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		of = (of ^ ((const uint8_t *)bytes)[i]) * FNV_PRIME;
	return of;
}

/* By words of 64 bits, for long data; @size is a multiple of theirs. */
static inline uint64_t fnv_words(const void *bytes, size_t size)
{
	uint64_t sum = FNV_BASIS, word;

	for (size_t at = 0; at < size; at += sizeof(word)) {
		memcpy(&word, (const uint8_t *)bytes + at, sizeof(word));
		sum = (sum ^ word) * FNV_PRIME;
	}
	return sum;
}
