/* LU decomposition, back propagation: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "dense.h"
#include "papers.h"

struct lud {
	float *matrix;
	size_t n, from;
};

/* Takes the rows from @from on, up to DENSE_SIDE of them, out of a later one. */
static void eliminate(const struct lud *lud, size_t row)
{
	float *here = lud->matrix + row * lud->n;

	for (size_t k = lud->from; k < row && k < lud->from + DENSE_SIDE; k++) {
		const float *above = lud->matrix + k * lud->n;

		here[k] = here[k] / above[k];
		for (size_t x = k + 1; x < lud->n; x++)
			here[x] = here[x] - here[k] * above[x];
	}
}

static void eliminate_below(void *context, size_t i)
{
	const struct lud *lud = context;

	eliminate(lud, lud->from + DENSE_SIDE + i);
}

/* Each element is changed in the same order as on the device. */
static void decompose(float *matrix, size_t n)
{
	struct lud lud = {matrix, n, 0};

	for (; lud.from < n; lud.from += DENSE_SIDE) {
		for (size_t row = lud.from + 1; row < lud.from + DENSE_SIDE; row++)
			eliminate(&lud, row);
		in_parallel(n - lud.from - DENSE_SIDE, eliminate_below, &lud);
	}
}

static void plan_lud_step(struct plan *plan, CUdeviceptr matrix, uint32_t n, uint32_t from)
{
	unsigned left = (n - from) / DENSE_SIDE - 1;

	plan_launch(plan, "lud_diagonal", shape_plane(1, 1, DENSE_SIDE, DENSE_SIDE),
		    ARGUMENT(matrix), ARGUMENT(n), ARGUMENT(from));
	if (!left)
		return;
	struct shape shape = {{left, 2, 1}, {DENSE_SIDE, DENSE_SIDE, 1}, 0};
	plan_launch(plan, "lud_perimeter", shape, ARGUMENT(matrix), ARGUMENT(n), ARGUMENT(from));
	shape.grid[1] = left;
	plan_launch(plan, "lud_internal", shape, ARGUMENT(matrix), ARGUMENT(n), ARGUMENT(from));
}

void plan_lud(struct plan *plan, uint32_t tiles)
{
	uint32_t n = tiles * DENSE_SIDE;
	struct buffer *matrix = plan_buffer(plan, (size_t)n * n * sizeof(float));
	float *start = buffer_start(matrix), *want = buffer_want(matrix);

	random_floats(&plan->random, start, (size_t)n * n, 0, 1);
	for (size_t i = 0; i < n; i++)
		start[i * n + i] += (float)n; /* needs no pivots */
	memcpy(want, start, matrix->bytes);
	decompose(want, n);
	for (uint32_t from = 0; from < n; from += DENSE_SIDE)
		plan_lud_step(plan, matrix->device, n, from);
}

struct net {
	const float *in, *errors;
	float *weights, *changes, *parts;
};

static void forward_tile(void *context, size_t tile)
{
	const struct net *net = context;

	for (size_t x = 0; x < DENSE_SIDE; x++) {
		float products[DENSE_SIDE];

		for (size_t y = 0; y < DENSE_SIDE; y++) {
			size_t node = tile * DENSE_SIDE + y;

			products[y] = net->weights[node * DENSE_SIDE + x] * net->in[node];
		}
		for (size_t half = DENSE_SIDE / 2; half; half /= 2)
			for (size_t y = 0; y < half; y++)
				products[y] += products[y + half];
		net->parts[tile * DENSE_SIDE + x] = products[0];
	}
}

static void adjust_node(void *context, size_t node)
{
	const struct net *net = context;

	for (size_t x = 0; x < DENSE_SIDE; x++) {
		size_t i = node * DENSE_SIDE + x;
		float change =
			NET_RATE * net->errors[x] * net->in[node] + NET_MOMENTUM * net->changes[i];

		net->weights[i] = net->weights[i] + change;
		net->changes[i] = change;
	}
}

/* Forward, back, and forward again with the changed weights. */
void plan_back_propagation(struct plan *plan, uint32_t tiles)
{
	size_t nodes = (size_t)tiles * DENSE_SIDE, bytes = nodes * DENSE_SIDE * sizeof(float);
	struct buffer *in = plan_buffer(plan, nodes * sizeof(float));
	struct buffer *errors = plan_buffer(plan, DENSE_SIDE * sizeof(float));
	struct buffer *weights = plan_buffer(plan, bytes), *changes = plan_buffer(plan, bytes);
	struct buffer *parts[2] = {plan_buffer(plan, nodes * sizeof(float)),
				   plan_buffer(plan, nodes * sizeof(float))};
	float *node = buffer_input(in), *error = buffer_input(errors);
	float *weight = buffer_start(weights), *change = buffer_start(changes);
	struct net net = {node, error, buffer_want(weights), buffer_want(changes),
			  buffer_want(parts[0])};
	struct shape shape = {{tiles, 1, 1}, {DENSE_SIDE, DENSE_SIDE, 1}, 0};

	random_floats(&plan->random, node, nodes, 0, 1);
	random_floats(&plan->random, error, DENSE_SIDE, -1, 1);
	random_floats(&plan->random, weight, nodes * DENSE_SIDE, -1, 1);
	random_floats(&plan->random, change, nodes * DENSE_SIDE, -1, 1);
	memcpy(net.weights, weight, bytes);
	memcpy(net.changes, change, bytes);
	in_parallel(tiles, forward_tile, &net);
	in_parallel(nodes, adjust_node, &net);
	net.parts = buffer_want(parts[1]);
	in_parallel(tiles, forward_tile, &net);
	plan_launch(plan, "net_forward", shape, ARGUMENT(in->device), ARGUMENT(weights->device),
		    ARGUMENT(parts[0]->device));
	plan_launch(plan, "net_adjust", shape, ARGUMENT(in->device), ARGUMENT(errors->device),
		    ARGUMENT(weights->device), ARGUMENT(changes->device));
	plan_launch(plan, "net_forward", shape, ARGUMENT(in->device), ARGUMENT(weights->device),
		    ARGUMENT(parts[1]->device));
}
