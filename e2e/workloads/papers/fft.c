/* Fourier transforms: the host's side. The wanted numbers are computed in double precision, by
 * another algorithm; single precision must come close. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include <weir/base.h>

#include "fft.h"
#include "papers.h"

struct transforms {
	const float *in;
	float *want;
};

/* The transform of @n numbers of @in, each @step-th. */
static void transform(double complex *out, const float *in, size_t step, size_t n)
{
	if (n == 1) {
		*out = (double)in[0] + (double)in[1] * I;
		return;
	}
	transform(out, in, 2 * step, n / 2);
	transform(out + n / 2, in + 2 * step, 2 * step, n / 2);
	for (size_t k = 0; k < n / 2; k++) {
		double angle = -2 * M_PI * (double)k / (double)n;
		double complex a = out[k], b = (cos(angle) + sin(angle) * I) * out[k + n / 2];

		out[k] = a + b;
		out[k + n / 2] = a - b;
	}
}

static void transform_one(void *context, size_t i)
{
	const struct transforms *t = context;
	double complex out[FFT_SIZE];

	transform(out, t->in + 2 * i * FFT_SIZE, 1, FFT_SIZE);
	for (size_t k = 0; k < FFT_SIZE; k++) {
		t->want[2 * (i * FFT_SIZE + k)] = (float)creal(out[k]);
		t->want[2 * (i * FFT_SIZE + k) + 1] = (float)cimag(out[k]);
	}
}

void plan_fft(struct plan *plan, uint32_t count)
{
	size_t floats = 2 * (size_t)count * FFT_SIZE;
	struct buffer *in = plan_buffer(plan, floats * sizeof(float));
	struct buffer *out = plan_buffer(plan, floats * sizeof(float));
	struct buffer *roots = plan_buffer(plan, FFT_SIZE * sizeof(float));
	float *value = buffer_input(in), *root = buffer_input(roots);
	struct transforms transforms = {value, buffer_want(out)};

	/* Sums of 512 numbers below 1 that are off by some 2^-22 of the largest partial sum. */
	out->tolerance = 2e-5;
	for (size_t i = 0; i < floats; i++)
		value[i] = random_float(&plan->random, -1, 1);
	for (unsigned i = 0; i < FFT_SIZE / 2; i++) {
		root[2 * i] = (float)cos(-2 * M_PI * i / FFT_SIZE);
		root[2 * i + 1] = (float)sin(-2 * M_PI * i / FFT_SIZE);
	}
	in_parallel(count, transform_one, &transforms);
	plan_launch(plan, "fft_512", ((struct shape){{count, 1, 1}, {FFT_THREADS, 1, 1}, 0}),
		    ARGUMENT(in->device), ARGUMENT(out->device), ARGUMENT(roots->device));
}
