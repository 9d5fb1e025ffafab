/* grep with the input and output on the host: files that lie in device memory, one behind the other.
 * A block for each chunk of a file. */
#include "grep.cuh"

/* @starts: of each chunk in @text, its file and its place there; @sizes: its bytes, with those of the
 * next chunk that a word may reach into. */
extern "C" __global__ void grep_chunks(const uint8_t *text, const uint64_t *starts, const grep_match *places,
				       const uint32_t *sizes, const char *word, unsigned length,
				       grep_match *matches, uint32_t *found, unsigned most)
{
	unsigned n = blockIdx.x;

	grep::search(text + starts[n], sizes[n], word, length, places[n], matches, found, most, threadIdx.x,
		     blockDim.x);
}
