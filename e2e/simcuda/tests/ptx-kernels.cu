// Kernels of test-ptx-nvcc.c: what nvcc makes of ordinary CUDA C++.
#include <cassert>
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TILE 16

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float left[TILE][TILE], right[TILE][TILE];
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		left[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
		right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
		__syncthreads();
		for (int j = 0; j < TILE; j++)
			sum += left[threadIdx.y][j] * right[j][threadIdx.x];
		__syncthreads();
	}
	c[y * n + x] = sum;
}

extern "C" __global__ void reduce(const int *in, unsigned long long *out, int n)
{
	__shared__ long long partial[32];
	long long sum = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += in[i];
	for (int offset = 16; offset; offset /= 2)
		sum += __shfl_down_sync(~0u, sum, offset);
	if (threadIdx.x % 32 == 0)
		partial[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x < 32) {
		sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
		for (int offset = 16; offset; offset /= 2)
			sum += __shfl_xor_sync(~0u, sum, offset);
		if (threadIdx.x == 0)
			atomicAdd(out, (unsigned long long)sum);
	}
}

extern "C" __global__ void histogram(const uint8_t *in, unsigned *out, int n)
{
	extern __shared__ unsigned bins[];

	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		bins[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&bins[in[i]], 1);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&out[i], bins[i]);
}

extern "C" __global__ void single_math(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float x = in[i];
	float *o = out + i * 16;
	o[0] = sinf(x);
	o[1] = cosf(x);
	o[2] = expf(x);
	o[3] = logf(fabsf(x));
	o[4] = powf(fabsf(x), 1.7f);
	o[5] = tanhf(x);
	o[6] = sqrtf(fabsf(x));
	o[7] = 1 / x;
	o[8] = x / 3.1f;
	o[9] = rsqrtf(fabsf(x));
	o[10] = erff(x);
	o[11] = fmodf(x, 0.7f);
	o[12] = __sinf(x);
	o[13] = cbrtf(x);
	o[14] = floorf(x) + ceilf(x) + truncf(x) + rintf(x) + roundf(x);
	o[15] = atan2f(x, 2.0f);
}

extern "C" __global__ void double_math(const double *in, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	double x = in[i];
	double *o = out + i * 16;
	o[0] = sin(x);
	o[1] = cos(x);
	o[2] = exp(x);
	o[3] = log(fabs(x));
	o[4] = pow(fabs(x), 1.7);
	o[5] = tanh(x);
	o[6] = sqrt(fabs(x));
	o[7] = 1 / x;
	o[8] = x / 3.1;
	o[9] = rsqrt(fabs(x));
	o[10] = erf(x);
	o[11] = fmod(x, 0.7);
	o[12] = lgamma(fabs(x) + 0.5);
	o[13] = cbrt(x);
	o[14] = floor(x) + ceil(x) + trunc(x) + rint(x) + round(x);
	o[15] = atan2(x, 2.0);
}

extern "C" __global__ void choose(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, v;

	if (i >= n)
		return;
	switch (in[i]) {
	case 0: v = i * 3; break;
	case 1: v = i ^ 0x55; break;
	case 2: v = i / 7; break;
	case 3: v = i % 11; break;
	case 4: v = -i; break;
	case 5: v = i << 3; break;
	case 6: v = __popc(i); break;
	case 7: v = __clz(i); break;
	default: v = 12345; break;
	}
	out[i] = v;
}

struct record {
	int kind;
	double factor;
	short offsets[3];
	char name[5];
};

__device__ __noinline__ double apply(record r, float x)
{
	return r.factor * x + r.offsets[r.kind];
}

__device__ __noinline__ record change(record r, int by)
{
	r.kind = (r.kind + by) % 3;
	r.name[0]++;
	return r;
}

typedef double (*function)(record, float);
__device__ __noinline__ double other(record r, float x)
{
	return r.factor - x + r.name[0];
}
__device__ function table[2] = {apply, other};

extern "C" __global__ void calls(record r, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = apply(change(r, i), i) + table[i & 1](r, i);
}

__device__ __noinline__ int factorial(int n)
{
	return n < 2 ? 1 : n * factorial(n - 1);
}

extern "C" __global__ void recursion(int *out)
{
	out[threadIdx.x] = factorial(threadIdx.x % 10);
}

extern "C" __global__ void local_array(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, values[16];

	if (i >= n)
		return;
	for (int k = 0; k < 16; k++)
		values[k] = in[(i + k) % n];
	for (int k = 1; k < 16; k++)
		for (int j = k; j > 0 && values[j - 1] > values[j]; j--) {
			int t = values[j];
			values[j] = values[j - 1];
			values[j - 1] = t;
		}
	out[i] = values[in[i] & 15];
}

__constant__ float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ unsigned counter = 100;
__device__ unsigned *counter_pointer = &counter;

extern "C" __global__ void globals(float *out)
{
	out[threadIdx.x] = weights[threadIdx.x & 7];
	if (atomicInc(counter_pointer, 1000000) == 100 + 63)
		out[0] = 42;
}

extern "C" __global__ void halves(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	__half h = __float2half(in[i]);
	__half2 pair = __floats2half2_rn(in[i], 2 * in[i]);
	__nv_bfloat16 b = __float2bfloat16(in[i]);
	pair = __hfma2(pair, pair, pair);
	out[4 * i] = __half2float(h * h + h);
	out[4 * i + 1] = __low2float(pair);
	out[4 * i + 2] = __high2float(pair);
	out[4 * i + 3] = __bfloat162float(b * b);
}

extern "C" __global__ void votes(unsigned *out)
{
	unsigned lane = threadIdx.x % 32;
	unsigned *o = out + threadIdx.x * 8;

	o[0] = __ballot_sync(~0u, lane % 3 == 0);
	o[1] = __any_sync(~0u, lane == 5) * 2 + __all_sync(~0u, lane < 32);
	o[2] = __match_any_sync(~0u, lane / 4);
	if (lane < 8)
		o[3] = __shfl_sync(0xff, lane * lane, (lane + 1) % 8);
	else
		o[3] = __shfl_up_sync(0xffffff00, lane, 2, 8);
	o[4] = __activemask();
	__syncwarp();
	o[5] = __syncthreads_count(lane & 1);
	o[6] = __syncthreads_or(threadIdx.x == 40) + 2 * __syncthreads_and(threadIdx.x < 1000);
#if __CUDA_ARCH__ >= 800
	o[7] = __reduce_add_sync(~0u, lane);
#else
	o[7] = 496;
#endif
}

/* A lock taken by every thread of every block; the threads of a warp contend, too. */
extern "C" __global__ void locked(int *lock, int *value)
{
	bool done = false;

	while (!done) {
		if (atomicCAS(lock, 0, 1) == 0) {
			__threadfence();
			*(volatile int *)value = *(volatile int *)value + 1;
			__threadfence();
			atomicExch(lock, 0);
			done = true;
		}
	}
}

extern "C" __global__ void early_exit(int *out, int n)
{
	__shared__ int sum;

	if ((int)threadIdx.x >= n)
		return;
	if (threadIdx.x == 0)
		sum = 0;
	__syncthreads();
	atomicAdd(&sum, (int)threadIdx.x);
	__syncthreads();
	out[threadIdx.x] = sum;
}

extern "C" __global__ void wide(long long *out, unsigned long long a, unsigned long long b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	out[0] = (long long)product;
	out[1] = (long long)(product >> 64);
	out[2] = (long long)(a / (b >> 20));
	out[3] = (long long)(a % (b >> 20));
	out[4] = (long long)a / -7;
	out[5] = __brevll(a);
	out[6] = __mul64hi((long long)a, (long long)b);
	out[7] = (long long)(float)(long long)a;
	out[8] = (long long)(double)b;
}

/* Groups of lanes that the program makes up: what it takes to find them differs much from nvcc to nvcc. */
extern "C" __global__ void groups(const int *in, int *out)
{
	namespace cg = cooperative_groups;
	cg::thread_block block = cg::this_thread_block();
	auto eight = cg::tiled_partition<8>(block);
	int x = in[threadIdx.x], sum = x;

	for (int offset = 4; offset; offset /= 2)
		sum += eight.shfl_xor(sum, offset);
	if (x % 3 == 0) {
		cg::coalesced_group some = cg::coalesced_threads();
		sum += 10000 * some.size() + 1000000 * some.thread_rank();
		sum += some.shfl(x, some.size() - 1);
	}
	block.sync();
	out[threadIdx.x] = sum;
}

extern "C" __global__ void says(int n)
{
	printf("thread %d of %s: %5.2f %c%%\n", threadIdx.x, "simcuda", n / 4.0, 'x');
	assert(n != 13);
}
