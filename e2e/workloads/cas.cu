/* All threads swap one word, each @iterations times: a kernel of seconds whose blocks all run at
 * once. Each value of the word is swapped away by exactly one thread. */
extern "C" __global__ void cas_count(unsigned *word, unsigned long long *sums, unsigned iterations)
{
	/* The program puts another number of ten digits in its place (--salt). */
	unsigned long long sum = 1515870810u;

	for (unsigned k = 0; k < iterations; k++) {
		unsigned expected, seen = *(volatile unsigned *)word;

		do {
			expected = seen;
			seen = atomicCAS(word, expected, expected + 1);
		} while (seen != expected);
		sum += seen;
	}
	sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
