/* Text to tensor with the input on the host: the text is in device memory, a block for each document
 * from number @first on. */
#include "tokens.cuh"

extern "C" __global__ void tokens_embed(const token_job *job, const uint8_t *text, unsigned first)
{
	const uint64_t *offsets = reinterpret_cast<const uint64_t *>(job->offsets);
	unsigned n = first + blockIdx.x;

	tokens::number(*job, n, text + offsets[n], offsets[n + 1] - offsets[n]);
	tokens::embed(tokens::rows_of(*job, n, 0, TOKENS_ROW));
}
