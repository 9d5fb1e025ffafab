/* Kernels for the parts of sm_90a that work asynchronously. */
#include "hopper.cuh"

#define STAGES 4

/* mbarriers alone: the first warp brings rows into a ring, four warps fold them. A block folds @rows rows of 128
 * words. The barriers are invalidated by the thread that made them, and their memory is then used for the result. */
extern "C" __global__ void __launch_bounds__(160) ring_fold(const unsigned *in, unsigned *out, unsigned rows)
{
	__shared__ unsigned ring[STAGES][128];
	__shared__ __align__(16) unsigned long long barriers[64]; /* first half of a stage: full; second: empty */
	unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const unsigned *mine = in + (size_t)blockIdx.x * rows * 128;

	if (threadIdx.x < STAGES) {
		mbarrier_init(shared_address(&barriers[2 * threadIdx.x]), 32);
		mbarrier_init(shared_address(&barriers[2 * threadIdx.x + 1]), 128);
	}
	__syncthreads();
	unsigned sum = blockIdx.x;
	for (unsigned k = 0; k < rows; k++) {
		unsigned stage = k % STAGES, parity = k / STAGES % 2;
		unsigned full = shared_address(&barriers[2 * stage]), empty = full + 8;

		if (warp == 0) {
			mbarrier_wait(empty, parity ^ 1);
			for (unsigned i = lane; i < 128; i += 32)
				ring[stage][i] = mine[k * 128 + i];
			mbarrier_arrive(full);
		} else {
			mbarrier_wait(full, parity);
			sum = sum * 0x9e3779b1u + ring[stage][(threadIdx.x - 32 + k) % 128];
			mbarrier_arrive(empty);
		}
	}
	__syncthreads();
	if (threadIdx.x < STAGES) {
		mbarrier_invalidate(shared_address(&barriers[2 * threadIdx.x]));
		mbarrier_invalidate(shared_address(&barriers[2 * threadIdx.x + 1]));
	}
	__syncthreads();
	unsigned *result = (unsigned *)barriers;
	if (warp > 0)
		result[threadIdx.x - 32] = sum;
	__syncthreads();
	if (warp > 0)
		out[blockIdx.x * 128 + threadIdx.x - 32] = result[127 - (threadIdx.x - 32)];
}

#define ROW 1024u /* words */

/* Bulk copies in and out: each row is brought, changed, and sent away, with @rows rows for a block. A block
 * leaves when its stores have read shared memory, though not yet written all of it. */
extern "C" __global__ void __launch_bounds__(256) bulk_mix(const unsigned *in, unsigned *out, unsigned rows)
{
	extern __shared__ __align__(128) unsigned dynamic[];
	__shared__ __align__(8) unsigned long long full[STAGES];
	unsigned *from = dynamic, *to = dynamic + STAGES * ROW;
	const unsigned *mine = in + (size_t)blockIdx.x * rows * ROW;
	unsigned *result = out + (size_t)blockIdx.x * rows * ROW;

	if (threadIdx.x == 0) {
#pragma unroll
		for (int k = 0; k < STAGES; k++)
			mbarrier_init(shared_address(&full[k]), 1);
		fence_mbarriers();
		for (unsigned k = 0; k < STAGES - 1 && k < rows; k++) {
			mbarrier_expect(shared_address(&full[k]), ROW * 4);
			bulk_load(shared_address(from + k * ROW), mine + k * ROW, ROW * 4, shared_address(&full[k]));
		}
	}
	__syncthreads();
	for (unsigned k = 0; k < rows; k++) {
		unsigned stage = k % STAGES, next = k + STAGES - 1;

		mbarrier_wait(shared_address(&full[stage]), k / STAGES % 2);
		if (threadIdx.x == 0 && k > 1)
			bulk_wait_read<1>();
		__syncthreads();
		unsigned *row = to + k % 2 * ROW;
		for (unsigned i = threadIdx.x; i < ROW; i += blockDim.x)
			row[i] = from[stage * ROW + (i ^ 5)] * 2654435761u + blockIdx.x + k;
		fence_proxy();
		__syncthreads();
		if (threadIdx.x > 0)
			continue;
		bulk_store(result + k * ROW, shared_address(row), ROW * 4);
		if (next < rows) {
			unsigned barrier = shared_address(&full[next % STAGES]);

			mbarrier_expect(barrier, ROW * 4);
			bulk_load(shared_address(from + next % STAGES * ROW), mine + next * ROW, ROW * 4, barrier);
		}
	}
	if (threadIdx.x == 0)
		bulk_wait_read<0>();
}

#define TILE_K  64
#define A_BYTES (128 * TILE_K * 2)

/* A product as CUTLASS makes it: a warp group brings tiles with the tensor memory accelerator, two others multiply.
 * It is written for clusters, and launched without.
 * c[m][n] = sum over k of a[m][k] * b[n][k]; a block has 128 x 128 of c. */
extern "C" __global__ void __launch_bounds__(384, 1)
	gemm_specialised(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b, float *c, unsigned n,
			 unsigned steps)
{
	extern __shared__ __align__(1024) unsigned char tiles[];
	__shared__ __align__(8) unsigned long long barriers[2 * STAGES];
	unsigned group = threadIdx.x / 128, base = shared_address(tiles), full = shared_address(barriers);
	unsigned empty = full + 8 * STAGES;

	if (threadIdx.x == 0) {
#pragma unroll
		for (int k = 0; k < STAGES; k++) {
			mbarrier_init(full + 8 * k, 1);
			mbarrier_init(empty + 8 * k, 2);
		}
		fence_mbarriers();
	}
	__syncthreads();
	if (group == 0) {
		registers_release<40>();
		if (threadIdx.x > 0)
			return;
		for (unsigned k = 0; k < steps; k++) {
			unsigned stage = k % STAGES, at = base + stage * 2 * A_BYTES;

			mbarrier_wait(empty + 8 * stage, k / STAGES % 2 ^ 1);
			mbarrier_expect(full + 8 * stage, 2 * A_BYTES);
			tensor_load(at, &a, k * TILE_K, blockIdx.y * 128, full + 8 * stage);
			tensor_load(at + A_BYTES, &b, k * TILE_K, blockIdx.x * 128, full + 8 * stage);
		}
		return;
	}
	registers_take<232>();
	float d[64];
	for (unsigned k = 0; k < steps; k++) {
		unsigned stage = k % STAGES, at = base + stage * 2 * A_BYTES;
		unsigned long long left = matrix_at(at + (group - 1) * 64 * TILE_K * 2), right = matrix_at(at + A_BYTES);

		mbarrier_wait(full + 8 * stage, k / STAGES % 2);
		wgmma_fence();
#pragma unroll
		for (int i = 0; i < TILE_K / 16; i++)
			wgmma_128(d, left + 2 * i, right + 2 * i, k > 0 || i > 0);
		wgmma_commit();
		wgmma_wait<0>();
		if (threadIdx.x % 128 == 0)
			mbarrier_arrive_at(empty + 8 * stage, block_rank());
	}
	wgmma_settle(d);
	barrier_of(1, 256);
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
	unsigned row = blockIdx.y * 128 + (group - 1) * 64 + warp * 16 + lane / 4;
	float *at = c + (size_t)row * n + blockIdx.x * 128 + lane % 4 * 2;
#pragma unroll
	for (int i = 0; i < 16; i++) {
		*(float2 *)(at + 8 * i) = make_float2(d[4 * i], d[4 * i + 1]);
		*(float2 *)(at + 8 * (size_t)n + 8 * i) = make_float2(d[4 * i + 2], d[4 * i + 3]);
	}
}

/* A product as Triton makes it: every thread multiplies, the next product begins before the last one is done, and
 * the result leaves by the tensor memory accelerator. A block has 64 x 64 of c. */
extern "C" __global__ void __launch_bounds__(128)
	gemm_pipelined(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,
		       const __grid_constant__ tensor_map c, unsigned steps)
{
	extern __shared__ __align__(1024) unsigned char tiles[];
	__shared__ __align__(8) unsigned long long full[STAGES];
	const unsigned bytes = 64 * TILE_K * 2;
	unsigned base = shared_address(tiles);
	float d[32];

	auto load = [&](unsigned k) {
		unsigned stage = k % STAGES, barrier = shared_address(&full[stage]);

		mbarrier_expect(barrier, 2 * bytes);
		tensor_load(base + stage * 2 * bytes, &a, k * TILE_K, blockIdx.y * 64, barrier);
		tensor_load(base + stage * 2 * bytes + bytes, &b, k * TILE_K, blockIdx.x * 64, barrier);
	};
	if (threadIdx.x == 0) {
#pragma unroll
		for (int k = 0; k < STAGES; k++)
			mbarrier_init(shared_address(&full[k]), 1);
		fence_mbarriers();
		for (unsigned k = 0; k < STAGES - 2 && k < steps; k++)
			load(k);
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < 32; i++)
		d[i] = 0;
	for (unsigned k = 0; k < steps; k++) {
		unsigned stage = k % STAGES, next = k + STAGES - 2;
		unsigned long long left = matrix_at(base + stage * 2 * bytes);
		unsigned long long right = matrix_at(base + stage * 2 * bytes + bytes);

		mbarrier_wait(shared_address(&full[stage]), k / STAGES % 2);
		wgmma_fence();
#pragma unroll
		for (int i = 0; i < TILE_K / 16; i++)
			wgmma_64(d, left + 2 * i, right + 2 * i, 1);
		wgmma_commit();
		wgmma_wait<1>();
		__syncthreads(); /* the product before is done in all warps */
		if (threadIdx.x == 0 && next < steps)
			load(next);
	}
	wgmma_wait<0>();
	wgmma_settle(d);
	__syncthreads();
	unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
	float *to = (float *)tiles + row * 64 + lane % 4 * 2;
#pragma unroll
	for (int i = 0; i < 8; i++) {
		*(float2 *)(to + 8 * i) = make_float2(d[4 * i], d[4 * i + 1]);
		*(float2 *)(to + 8 * 64 + 8 * i) = make_float2(d[4 * i + 2], d[4 * i + 3]);
	}
	fence_proxy();
	__syncthreads();
	if (threadIdx.x == 0) {
		tensor_store(&c, base, blockIdx.x * 64, blockIdx.y * 64);
		bulk_wait_read<0>();
	}
}
