/* Matrix product, sparse matrix by vector, neural net: the host's side. */
#include <stdlib.h>

#include <weir/base.h>

#include "papers.h"

#define TILE 16
#define WARP 32

static const float *matrix(struct plan *plan, struct buffer **buffer, uint32_t elements,
			   float limit)
{
	*buffer = plan_buffer(plan, elements * sizeof(float));
	float *values = buffer_input(*buffer);

	random_floats(&plan->random, values, elements, -limit, limit);
	return values;
}

struct product {
	const float *a, *b;
	float *c;
	uint32_t n;
};

static void product_row(void *context, size_t row)
{
	const struct product *p = context;
	float *c = p->c + row * p->n;

	for (uint32_t i = 0; i < p->n; i++)
		c[i] = 0;
	for (uint32_t k = 0; k < p->n; k++) {
		float factor = p->a[row * p->n + k];

		for (uint32_t i = 0; i < p->n; i++)
			c[i] += factor * p->b[(size_t)k * p->n + i];
	}
}

/* The kernel may contract: its file is compiled as any program's. The elements are small integers,
 * whose sums are exact. */
void plan_matrix_multiply(struct plan *plan, uint32_t n)
{
	struct buffer *a = plan_buffer(plan, (size_t)n * n * sizeof(float));
	struct buffer *b = plan_buffer(plan, a->bytes), *c = plan_buffer(plan, a->bytes);
	float *left = buffer_input(a), *right = buffer_input(b);
	struct product product = {left, right, buffer_want(c), n};

	for (size_t i = 0; i < (size_t)n * n; i++) {
		left[i] = (float)random_below(&plan->random, 16);
		right[i] = (float)random_below(&plan->random, 16);
	}
	in_parallel(n, product_row, &product);
	plan_launch(plan, "matrix_multiply", shape_plane(n, n, TILE, TILE), ARGUMENT(a->device),
		    ARGUMENT(b->device), ARGUMENT(c->device), ARGUMENT(n));
}

/* The sum of a row as a warp forms it: each lane adds up every 32nd element, then halves are added.
 */
static float warp_sum(const float *values, const uint32_t *columns, const float *x, uint32_t n)
{
	float sums[WARP] = {0};

	for (uint32_t k = 0; k < n; k++)
		sums[k % WARP] += values[k] * x[columns[k]];
	for (unsigned step = WARP / 2; step; step /= 2)
		for (unsigned lane = 0; lane < step; lane++)
			sums[lane] += sums[lane + step];
	return sums[0];
}

/* Rows of 0 to 127 elements: warps of one block differ much in length. */
void plan_sparse_multiply(struct plan *plan, uint32_t rows)
{
	struct buffer *starts = plan_buffer(plan, (rows + 1) * sizeof(uint32_t));
	uint32_t *start = buffer_input(starts);
	struct buffer *columns, *values, *x, *y = plan_buffer(plan, rows * sizeof(float));
	float *want = buffer_want(y);

	start[0] = 0;
	for (uint32_t row = 0; row < rows; row++)
		start[row + 1] = start[row] + random_below(&plan->random, 128);
	columns = plan_buffer(plan, (start[rows] + 1) * sizeof(uint32_t));
	uint32_t *column = buffer_input(columns);
	for (uint32_t k = 0; k <= start[rows]; k++)
		column[k] = random_below(&plan->random, rows);
	const float *value = matrix(plan, &values, start[rows] + 1, 10);
	const float *vector = matrix(plan, &x, rows, 1);
	for (uint32_t row = 0; row < rows; row++)
		want[row] = warp_sum(value + start[row], column + start[row], vector,
				     start[row + 1] - start[row]);
	plan_launch(plan, "sparse_multiply", shape_line((uint64_t)rows * WARP, 128),
		    ARGUMENT(starts->device), ARGUMENT(columns->device), ARGUMENT(values->device),
		    ARGUMENT(x->device), ARGUMENT(y->device), ARGUMENT(rows));
}

struct layer {
	const float *in, *weights, *bias;
	float *out;
	uint32_t inputs, outputs, rectify;
};

static void layer_row(void *context, size_t row)
{
	const struct layer *l = context;
	float *out = l->out + row * l->outputs;

	for (uint32_t j = 0; j < l->outputs; j++)
		out[j] = l->bias[j];
	for (uint32_t k = 0; k < l->inputs; k++)
		for (uint32_t j = 0; j < l->outputs; j++)
			out[j] += l->in[row * l->inputs + k] * l->weights[k * l->outputs + j];
	for (uint32_t j = 0; j < l->outputs && l->rectify; j++)
		if (out[j] < 0)
			out[j] = 0;
}

/* The values between the first layer and the classes of handwritten digits, if the net could read.
 */
void plan_neural_net(struct plan *plan, uint32_t count)
{
	static const uint32_t widths[] = {196, 64, 48, 10};
	struct buffer *weights, *bias, *in, *out, *classes;
	struct layer layer = {.in = matrix(plan, &in, count * widths[0], 1)};

	for (unsigned i = 0; i + 1 < countof(widths); i++) {
		layer.inputs = widths[i];
		layer.outputs = widths[i + 1];
		layer.rectify = i + 2 < countof(widths);
		layer.weights = matrix(plan, &weights, layer.inputs * layer.outputs, 0.25f);
		layer.bias = matrix(plan, &bias, layer.outputs, 0.5f);
		out = plan_buffer(plan, (size_t)count * layer.outputs * sizeof(float));
		layer.out = buffer_want(out);
		in_parallel(count, layer_row, &layer);
		plan_launch(plan, "net_layer", shape_plane(layer.outputs, count, TILE, TILE),
			    ARGUMENT(in->device), ARGUMENT(weights->device), ARGUMENT(bias->device),
			    ARGUMENT(out->device), ARGUMENT(count), ARGUMENT(layer.inputs),
			    ARGUMENT(layer.outputs), ARGUMENT(layer.rectify));
		layer.in = layer.out;
		in = out;
	}
	classes = plan_buffer(plan, count * sizeof(uint32_t));
	uint32_t *want = buffer_want(classes);
	for (uint32_t row = 0; row < count; row++) {
		const float *scores = layer.in + (size_t)row * layer.outputs;

		want[row] = 0;
		for (uint32_t j = 1; j < layer.outputs; j++)
			if (scores[j] > scores[want[row]])
				want[row] = j;
	}
	struct shape shape = {{(count + 3) / 4, 1, 1}, {WARP, 4, 1}, 0};
	plan_launch(plan, "net_classify", shape, ARGUMENT(in->device), ARGUMENT(classes->device),
		    ARGUMENT(count), ARGUMENT(layer.outputs));
}
