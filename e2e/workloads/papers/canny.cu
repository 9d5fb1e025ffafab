/* The Canny edge detector in its four kernels (as in CHAI), on bytes and in integers: smooth,
 * gradient, thin, and keep weak edges that a strong one reaches. */
#include "canny.h"

static __device__ int clamped(const unsigned char *in, int x, int y, int width, int height)
{
	x = min(max(x, 0), width - 1);
	y = min(max(y, 0), height - 1);
	return in[y * width + x];
}

__constant__ int gauss_weights[25];

/* Every thread has one pixel; the rim is continued. */
extern "C" __global__ void canny_gauss(const unsigned char *in, unsigned char *out, int width, int height)
{
	__shared__ unsigned char tile[CANNY_SIDE + 4][CANNY_SIDE + 4];
	int left = blockIdx.x * CANNY_SIDE, top = blockIdx.y * CANNY_SIDE;
	int x = left + threadIdx.x, y = top + threadIdx.y, sum = 0;

	for (int i = threadIdx.y * CANNY_SIDE + threadIdx.x; i < (CANNY_SIDE + 4) * (CANNY_SIDE + 4);
	     i += CANNY_SIDE * CANNY_SIDE) {
		int tx = i % (CANNY_SIDE + 4), ty = i / (CANNY_SIDE + 4);

		tile[ty][tx] = clamped(in, left + tx - 2, top + ty - 2, width, height);
	}
	__syncthreads();
	if (x >= width || y >= height)
		return;
	for (int dy = 0; dy < 5; dy++)
		for (int dx = 0; dx < 5; dx++)
			sum += gauss_weights[5 * dy + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
	out[y * width + x] = sum / 159;
}

/* The gradient's size, and its direction: 0 across, 1 falling, 2 down, 3 rising. */
extern "C" __global__ void canny_sobel(const unsigned char *in, unsigned short *size,
				       unsigned char *direction, int width, int height)
{
	int x = blockIdx.x * CANNY_SIDE + threadIdx.x, y = blockIdx.y * CANNY_SIDE + threadIdx.y;
	int p[3][3];

	if (x >= width || y >= height)
		return;
	for (int dy = 0; dy < 3; dy++)
		for (int dx = 0; dx < 3; dx++)
			p[dy][dx] = clamped(in, x + dx - 1, y + dy - 1, width, height);
	int gx = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0];
	int gy = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2];
	int ax = abs(gx), ay = abs(gy);

	size[y * width + x] = ax + ay;
	/* 2/5 is about the tangent of 22.5 degrees. */
	direction[y * width + x] = 5 * ay < 2 * ax ? 0 : 5 * ax < 2 * ay ? 2 : (gx < 0) == (gy < 0) ? 1 : 3;
}

/* A pixel is an edge if its gradient is as large as those before and behind it. */
extern "C" __global__ void canny_thin(const unsigned short *size, const unsigned char *direction,
				      unsigned char *edges, int width, int height)
{
	int x = blockIdx.x * CANNY_SIDE + threadIdx.x, y = blockIdx.y * CANNY_SIDE + threadIdx.y;
	unsigned char edge = EDGE_NONE;

	if (x >= width || y >= height)
		return;
	if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
		int at = y * width + x, way = direction[at];
		int step = way == 0 ? 1 : way == 1 ? width + 1 : way == 2 ? width : width - 1;
		int here = size[at];

		if (here >= WEAK_FROM && here >= size[at - step] && here >= size[at + step])
			edge = here >= STRONG_FROM ? EDGE_STRONG : EDGE_WEAK;
	}
	edges[y * width + x] = edge;
}

/* Weak pixels beside strong ones become strong, within the block until nothing changes any more. Over
 * the borders of blocks a launch sees what the one before it left, or better. */
extern "C" __global__ void canny_follow(unsigned char *edges, int width, int height)
{
	__shared__ volatile unsigned char tile[CANNY_SIDE + 2][CANNY_SIDE + 2];
	int left = blockIdx.x * CANNY_SIDE - 1, top = blockIdx.y * CANNY_SIDE - 1;
	int tx = threadIdx.x + 1, ty = threadIdx.y + 1, x = left + tx, y = top + ty;

	for (int i = threadIdx.y * CANNY_SIDE + threadIdx.x; i < (CANNY_SIDE + 2) * (CANNY_SIDE + 2);
	     i += CANNY_SIDE * CANNY_SIDE) {
		int fx = left + i % (CANNY_SIDE + 2), fy = top + i / (CANNY_SIDE + 2);

		tile[i / (CANNY_SIDE + 2)][i % (CANNY_SIDE + 2)] =
			fx >= 0 && fx < width && fy >= 0 && fy < height ? edges[fy * width + fx] : EDGE_NONE;
	}
	__syncthreads();
	bool weak = tile[ty][tx] == EDGE_WEAK, changed;
	do {
		bool strong = false;

		changed = false;
		if (weak)
			for (int k = 0; k < 9; k++)
				strong |= tile[ty + k / 3 - 1][tx + k % 3 - 1] == EDGE_STRONG;
		if (weak && strong) {
			tile[ty][tx] = EDGE_STRONG;
			edges[y * width + x] = EDGE_STRONG;
			weak = false;
			changed = true;
		}
	} while (__syncthreads_or(changed));
}
