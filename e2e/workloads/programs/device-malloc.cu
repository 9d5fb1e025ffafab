/* Each thread builds a linked list with malloc(), sums it up and frees it. */
#include "program.cuh"

#define THREADS 64u

struct node {
	uint32_t value;
	node *next;
};

__global__ void sum_lists(uint32_t *sums, unsigned length)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	node *head = nullptr;
	uint32_t sum = 0;

	if (malloc(1ull << 40))
		return; /* no heap has room for that */
	for (unsigned k = 0; k < length; k++) {
		node *one = static_cast<node *>(malloc(sizeof(node)));

		if (!one)
			return; /* the sum stays wrong */
		one->value = mixed(i * length + k);
		one->next = head;
		head = one;
	}
	while (head) {
		node *next = head->next;

		sum = sum * 3 + head->value;
		free(head);
		head = next;
	}
	sums[i] = sum;
}

int main(int argc, char **argv)
{
	program program("device-malloc", argc, argv);
	unsigned n = THREADS * program.size(2, 256), length = program.size(5, 16);
	std::vector<uint32_t> expected(n);

	CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
	device_array<uint32_t> sums(n);

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = length; k-- > 0;)
			expected[i] = expected[i] * 3 + mixed(i * length + k);
	while (program.goes_on()) {
		CHECK(cudaMemset(sums.data, 0, n * sizeof(uint32_t)));
		sum_lists<<<n / THREADS, THREADS>>>(sums.data, length);
		CHECK(cudaGetLastError());
		program.check(sums.get(), expected);
	}
	return program.right();
}
