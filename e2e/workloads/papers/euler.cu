/* The three kernels of a step of the Euler solver; a thread for each element. */
#include "euler.h"

extern "C" __global__ void euler_step_factors(const float *variables, const float *volumes,
					      float *factors, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		factors[i] = euler_step_factor(euler_load(variables, n, i), volumes[i]);
}

extern "C" __global__ void euler_fluxes(const float *variables, const int *neighbours,
					const float *normals, float *fluxes, unsigned n,
					const struct euler_state *far)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	struct euler_state flux = euler_flux(variables, neighbours, normals, n, i, *far);
	for (unsigned k = 0; k < EULER_VARIABLES; k++)
		fluxes[k * n + i] = flux.v[k];
}

extern "C" __global__ void euler_advance(float *variables, const float *factors, const float *volumes,
					 const float *fluxes, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float factor = factors[i] / volumes[i];
	for (unsigned k = 0; k < EULER_VARIABLES; k++)
		variables[k * n + i] = variables[k * n + i] - factor * fluxes[k * n + i];
}
