/* Clusters of four blocks: the tensor memory accelerator fetches each block's part into shared
 * memory, and each block reads the parts of the three others there. Needs compute capability 9.0.
 */
#include "program.cuh"

#include <cooperative_groups.h>
#include <cuda/barrier>

#define BLOCKS  4u /* of a cluster */
#define THREADS 256u
#define PART    1024u

__global__ void __cluster_dims__(BLOCKS, 1, 1) add_parts(const uint32_t *from, uint32_t *to)
{
	using barrier = cuda::barrier<cuda::thread_scope_block>;
	cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
	__shared__ alignas(128) uint32_t part[PART];
#pragma nv_diag_suppress static_var_with_dynamic_init
	__shared__ barrier fetched;

	if (!threadIdx.x) {
		init(&fetched, blockDim.x);
		cuda::device::experimental::fence_proxy_async_shared_cta();
	}
	__syncthreads();

	barrier::arrival_token token;

	if (!threadIdx.x) {
		cuda::device::experimental::cp_async_bulk_global_to_shared(
			part, from + blockIdx.x * PART, sizeof(part), fetched);
		token = cuda::device::barrier_arrive_tx(fetched, 1, sizeof(part));
	} else {
		token = fetched.arrive();
	}
	fetched.wait(std::move(token));
	cluster.sync();
	for (unsigned i = threadIdx.x; i < PART; i += blockDim.x) {
		uint32_t sum = 0;

		for (unsigned k = 0; k < BLOCKS; k++)
			sum = sum * 31 +
			      cluster.map_shared_rank(part, (cluster.block_rank() + k) % BLOCKS)[i];
		to[blockIdx.x * PART + i] = sum;
	}
	cluster.sync(); /* shared memory is read by others until here */
}

static uint32_t added(const std::vector<uint32_t> &from, unsigned block, unsigned i)
{
	unsigned first = block / BLOCKS * BLOCKS, rank = block % BLOCKS;
	uint32_t sum = 0;

	for (unsigned k = 0; k < BLOCKS; k++)
		sum = sum * 31 + from[(first + (rank + k) % BLOCKS) * PART + i];
	return sum;
}

int main(int argc, char **argv)
{
	program program("clusters", argc, argv);
	unsigned blocks = BLOCKS * program.size(1, 512), n = blocks * PART;
	std::vector<uint32_t> input(n), expected(n);
	device_array<uint32_t> from(n), to(n);

	for (unsigned i = 0; i < n; i++)
		input[i] = mixed(i);
	for (unsigned i = 0; i < n; i++)
		expected[i] = added(input, i / PART, i % PART);
	from.set(input);
	while (program.goes_on()) {
		CHECK(cudaMemset(to.data, 0, n * sizeof(uint32_t)));
		for (unsigned k = 0; k < 20; k++)
			add_parts<<<blocks, THREADS>>>(from.data, to.data);
		CHECK(cudaGetLastError());
		program.check(to.get(), expected);
	}
	return program.right();
}
