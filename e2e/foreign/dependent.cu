/* Kernels as inference engines write them for programmatic dependent launch: each waits for the
 * launch in front of it and lets the next one begin early. Nothing here runs: nvcc compiles them to
 * PTX. */
#include <cuda_fp16.h>

#include <cstdint>

#define WARP 32

static __device__ void dependence_wait()
{
	asm volatile("griddepcontrol.wait;" ::: "memory");
}

static __device__ void dependence_launch()
{
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

static __device__ float warp_sum(float x)
{
	for (int mask = WARP / 2; mask; mask >>= 1)
		x += __shfl_xor_sync(~0u, x, mask);
	return x;
}

template <int THREADS> static __device__ float block_sum(float x)
{
	__shared__ float sums[THREADS / WARP];

	x = warp_sum(x);
	if constexpr (THREADS > WARP) {
		if (threadIdx.x % WARP == 0)
			sums[threadIdx.x / WARP] = x;
		__syncthreads();
		x = warp_sum(threadIdx.x % WARP < THREADS / WARP ? sums[threadIdx.x % WARP] : 0);
		__syncthreads();
	}
	return x;
}

/* Four bits a weight, 32 of them with a scale. */
struct block_q4 {
	half scale;
	uint8_t quants[16];
};

struct block_q8 {
	half scale;
	int8_t quants[32];
};

static __device__ float dot(const block_q4 &w, const float *x)
{
	float sum = 0;

	for (int k = 0; k < 16; k++)
		sum += ((w.quants[k] & 15) - 8) * x[k] + ((w.quants[k] >> 4) - 8) * x[k + 16];
	return sum * __half2float(w.scale);
}

static __device__ float dot(const block_q8 &w, const float *x)
{
	float sum = 0;

	for (int k = 0; k < 32; k++)
		sum += w.quants[k] * x[k];
	return sum * __half2float(w.scale);
}

template <typename T, int THREADS, int COLUMNS>
__global__ void __launch_bounds__(THREADS)
	matrix_vector(const T *w, const float *x, float *y, int blocks, int stride)
{
	const T *row = w + static_cast<int64_t>(blockIdx.x) * blocks;
	float sums[COLUMNS] = {};

	dependence_wait();
	for (int b = threadIdx.x; b < blocks; b += THREADS)
		for (int c = 0; c < COLUMNS; c++)
			sums[c] += dot(row[b], x + c * stride + b * 32);
	dependence_launch();
	for (int c = 0; c < COLUMNS; c++) {
		float sum = block_sum<THREADS>(sums[c]);

		if (threadIdx.x == 0)
			y[c * gridDim.x + blockIdx.x] = sum;
	}
}

template <int THREADS, bool SCALED>
__global__ void __launch_bounds__(THREADS)
	rms_norm(const float *x, const float *w, float *y, int n, float epsilon)
{
	float sum = 0;

	x += static_cast<int64_t>(blockIdx.x) * n;
	y += static_cast<int64_t>(blockIdx.x) * n;
	dependence_wait();
	for (int k = threadIdx.x; k < n; k += THREADS)
		sum += x[k] * x[k];
	sum = rsqrtf(block_sum<THREADS>(sum) / n + epsilon);
	dependence_launch();
	for (int k = threadIdx.x; k < n; k += THREADS)
		y[k] = x[k] * sum * (SCALED ? w[k] : 1);
}

template <typename T>
__global__ void rotate(const T *x, T *y, const int *positions, int half_row, float base)
{
	int k = blockIdx.x * blockDim.x + threadIdx.x;
	int64_t at = static_cast<int64_t>(blockIdx.y) * 2 * half_row + k;
	float sine, cosine;

	if (k >= half_row)
		return;
	dependence_wait();
	sincosf(positions[blockIdx.y] * powf(base, -static_cast<float>(k) / half_row), &sine,
		&cosine);
	dependence_launch();
	y[at] = static_cast<T>(static_cast<float>(x[at]) * cosine -
			       static_cast<float>(x[at + half_row]) * sine);
	y[at + half_row] = static_cast<T>(static_cast<float>(x[at]) * sine +
					  static_cast<float>(x[at + half_row]) * cosine);
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS) quantize(const float *x, block_q8 *y, int64_t n)
{
	int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
	float value, high;

	if (at >= n)
		return;
	dependence_wait();
	value = x[at];
	high = fabsf(value);
	for (int mask = WARP / 2; mask; mask >>= 1)
		high = fmaxf(high, __shfl_xor_sync(~0u, high, mask));
	y[at / 32].quants[at % 32] = high ? roundf(value * 127 / high) : 0;
	dependence_launch();
	if (at % 32 == 0)
		y[at / 32].scale = __float2half(high / 127);
}

template <int THREADS, int KEEP>
__global__ void __launch_bounds__(THREADS)
	top_experts(const float *logits, float *weights, int *ids, int n)
{
	const float *row = logits + blockIdx.x * n;
	float total = 0;

	dependence_wait();
	for (int kept = 0; kept < KEEP; kept++) {
		float best = -INFINITY;
		int at = 0;

		for (int k = threadIdx.x; k < n; k += WARP) {
			bool taken = false;

			for (int e = 0; e < kept; e++)
				taken |= ids[blockIdx.x * KEEP + e] == k;
			if (!taken && row[k] > best)
				best = row[k], at = k;
		}
		for (int mask = WARP / 2; mask; mask >>= 1) {
			float other = __shfl_xor_sync(~0u, best, mask);
			int other_at = __shfl_xor_sync(~0u, at, mask);

			if (other > best || (other == best && other_at < at))
				best = other, at = other_at;
		}
		if (threadIdx.x == 0)
			ids[blockIdx.x * KEEP + kept] = at,
						weights[blockIdx.x * KEEP + kept] = expf(best);
		total += expf(best);
		__syncwarp();
	}
	dependence_launch();
	if (threadIdx.x < KEEP)
		weights[blockIdx.x * KEEP + threadIdx.x] /= total;
}

#define MATRIX_VECTOR(type, threads)                                                          \
	template __global__ void matrix_vector<type, threads, 1>(const type *, const float *, \
								 float *, int, int);          \
	template __global__ void matrix_vector<type, threads, 2>(const type *, const float *, \
								 float *, int, int);          \
	template __global__ void matrix_vector<type, threads, 8>(const type *, const float *, \
								 float *, int, int);
MATRIX_VECTOR(block_q4, 32)
MATRIX_VECTOR(block_q4, 128)
MATRIX_VECTOR(block_q8, 32)
MATRIX_VECTOR(block_q8, 256)

#define RMS_NORM(threads)                                                                        \
	template __global__ void rms_norm<threads, true>(const float *, const float *, float *,  \
							 int, float);                            \
	template __global__ void rms_norm<threads, false>(const float *, const float *, float *, \
							  int, float);
RMS_NORM(32)
RMS_NORM(256)
RMS_NORM(1024)

template __global__ void rotate<float>(const float *, float *, const int *, int, float);
template __global__ void rotate<half>(const half *, half *, const int *, int, float);
template __global__ void quantize<128>(const float *, block_q8 *, int64_t);
template __global__ void quantize<256>(const float *, block_q8 *, int64_t);
template __global__ void top_experts<32, 2>(const float *, float *, int *, int);
template __global__ void top_experts<32, 8>(const float *, float *, int *, int);
