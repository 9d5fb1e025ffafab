/* The search in bytes on the device. */
#pragma once

#include "grep-job.h"

namespace grep
{

static __device__ bool is_at(const uint8_t *text, const char *word, unsigned length)
{
	unsigned i = 0;

	while (i < length && text[i] == static_cast<uint8_t>(word[i]))
		i++;
	return i == length;
}

/* Adds where @word begins in @size bytes, with the file's number and @before added to the place. By
 * @threads threads, of which this is number @thread. Matches beyond @most are counted, not kept. */
static __device__ void search(const uint8_t *text, unsigned size, const char *word, unsigned length,
			      grep_match where, grep_match *matches, uint32_t *found, unsigned most,
			      unsigned thread, unsigned threads)
{
	for (unsigned i = thread; i + length <= size; i += threads) {
		if (!is_at(text + i, word, length))
			continue;
		unsigned n = atomicAdd(found, 1u);

		if (n < most)
			matches[n] = {where.file, where.offset + i};
	}
}

}
