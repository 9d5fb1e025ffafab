/* Fields of many sources: the potential of atoms up to a cutoff, and the non-Cartesian sums of magnetic
 * resonance imaging (Parboil's CUTCP and MRI-Q). */
#include "fields.h"

/* A block computes the points of one bin of a cube of @bins bins along an edge. Its rim is a wall of
 * bins without points. Atoms have places and a charge; those of a bin stand behind each other. */
extern "C" __global__ void cutoff_potential(const float4 *atoms, float *potential, int bins)
{
	__shared__ float4 near[BIN_ATOMS];
	int thread = (threadIdx.z * BIN_SIDE + threadIdx.y) * BIN_SIDE + threadIdx.x;
	int bx = blockIdx.x % bins, by = blockIdx.x / bins % bins, bz = blockIdx.x / bins / bins;
	int x = bx * BIN_SIDE + threadIdx.x, y = by * BIN_SIDE + threadIdx.y, z = bz * BIN_SIDE + threadIdx.z;
	int side = bins * BIN_SIDE, wide = bins + 2;
	float sums[BIN_STEPS] = {0};

	for (int bin = 0; bin < 27; bin++) {
		int at = ((bz + bin / 9) * wide + by + bin / 3 % 3) * wide + bx + bin % 3;

		__syncthreads();
		if (thread < BIN_ATOMS)
			near[thread] = atoms[at * BIN_ATOMS + thread];
		__syncthreads();
		for (int atom = 0; atom < BIN_ATOMS; atom++) {
			float across = near[atom].x - (float)x, along = near[atom].y - (float)y;
			float flat = across * across + along * along;

#pragma unroll
			for (int step = 0; step < BIN_STEPS; step++) {
				float up = near[atom].z - (float)(z + step * BIN_DEPTH);

				sums[step] += field_potential(near[atom].w, flat + up * up);
			}
		}
	}
#pragma unroll
	for (int step = 0; step < BIN_STEPS; step++)
		potential[((z + step * BIN_DEPTH) * side + y) * side + x] = sums[step];
}

__constant__ float4 samples[SAMPLES]; /* frequencies along x, y, z, and a weight */

/* Adds what SAMPLES frequencies contribute to each place. */
extern "C" __global__ void resonance(const float *x, const float *y, const float *z, float *real, float *imaginary,
				     unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float re = real[i], im = imaginary[i], px = x[i], py = y[i], pz = z[i];

	for (unsigned k = 0; k < SAMPLES; k++) {
		float turns = samples[k].x * px + samples[k].y * py + samples[k].z * pz;

		re += samples[k].w * field_sine(turns + 0.25f);
		im += samples[k].w * field_sine(turns);
	}
	real[i] = re;
	imaginary[i] = im;
}
