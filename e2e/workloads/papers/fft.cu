/* Fourier transforms of 512 complex numbers (SHOC's size), a block for each, in shared memory: nine
 * passes of Stockham's algorithm, which needs no reordering. */
#include "fft.h"

extern "C" __global__ void fft_512(const float2 *in, float2 *out, const float2 *roots)
{
	__shared__ float2 data[2][FFT_SIZE];
	const float2 *mine = in + (size_t)blockIdx.x * FFT_SIZE;
	unsigned now = 0;

	for (unsigned i = threadIdx.x; i < FFT_SIZE; i += FFT_THREADS)
		data[0][i] = mine[i];
	for (unsigned half = FFT_SIZE / 2, stride = 1; half; half /= 2, stride *= 2, now = !now) {
		__syncthreads();
		for (unsigned i = threadIdx.x; i < FFT_SIZE / 2; i += FFT_THREADS) {
			unsigned p = i / stride, q = i % stride;
			float2 a = data[now][i], b = data[now][i + FFT_SIZE / 2], root = roots[p * stride];
			float x = a.x - b.x, y = a.y - b.y;

			data[!now][q + 2 * p * stride] = make_float2(a.x + b.x, a.y + b.y);
			data[!now][q + (2 * p + 1) * stride] =
				make_float2(x * root.x - y * root.y, x * root.y + y * root.x);
		}
	}
	__syncthreads();
	for (unsigned i = threadIdx.x; i < FFT_SIZE; i += FFT_THREADS)
		out[(size_t)blockIdx.x * FFT_SIZE + i] = data[now][i];
}
