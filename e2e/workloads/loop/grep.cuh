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

/* Which of the four bytes of @word, and the byte behind it, are equal to those of @first and @second:
 * 0xff in the place of the former. @next: the four bytes behind @word. */
static __device__ unsigned candidates(unsigned word, unsigned next, unsigned first, unsigned second)
{
	return __vcmpeq4(word, first) & __vcmpeq4(word >> 8 | next << 24, second);
}

/* Adds where @word begins in @size bytes of @text, with the file's number and @where added to the place.
 * By @threads threads, of which this is number @thread: each looks at 16 bytes at a time. Matches beyond
 * @most are counted, not kept. @text is aligned to 16 bytes; GREP_AHEAD bytes behind it can be read. */
static __device__ void search(const uint8_t *text, unsigned size, const char *word, unsigned length,
			      grep_match where, grep_match *matches, uint32_t *found, unsigned most,
			      unsigned thread, unsigned threads)
{
	const unsigned first = static_cast<uint8_t>(word[0]) * 0x01010101u,
		       second = static_cast<uint8_t>(word[1]) * 0x01010101u;

	for (unsigned i = 16 * thread; i + length <= size; i += 16 * threads) {
		uint4 here = *reinterpret_cast<const uint4 *>(text + i);
		const unsigned words[] = {here.x, here.y, here.z, here.w, text[i + 16]};

#pragma unroll
		for (unsigned k = 0; k < 4; k++) {
			unsigned left = candidates(words[k], words[k + 1], first, second);

			while (left) {
				unsigned byte = (__ffs(static_cast<int>(left)) - 1) / 8, at = i + 4 * k + byte;

				left &= ~(0xffu << 8 * byte);
				if (at + length > size || !is_at(text + at, word, length))
					continue;
				unsigned n = atomicAdd(found, 1u);

				if (n < most)
					matches[n] = {where.file, where.offset + at};
			}
		}
	}
}

}
