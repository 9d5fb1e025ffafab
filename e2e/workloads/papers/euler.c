/* The Euler solver: a plane of skewed quadrilaterals in a stream of gas, with walls above and
 * below; the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "euler.h"
#include "papers.h"

#define EULER_STEPS 3

struct gas {
	float *variables, *factors, *fluxes;
	const float *volumes, *normals;
	const int *neighbours;
	uint32_t n;
	struct euler_state far;
};

/* Quadrilaterals of 1 x 1 whose corners are moved a bit. */
static void fill_mesh(struct plan *plan, float *volumes, float *normals, int *neighbours,
		      uint32_t side)
{
	static const int steps[EULER_FACES][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
	size_t n = (size_t)side * side;

	for (size_t i = 0; i < n; i++) {
		int x = (int)(i % side), y = (int)(i / side), end = (int)side;

		volumes[i] = random_float(&plan->random, 0.9f, 1.1f);
		for (size_t k = 0; k < EULER_FACES; k++) {
			int tx = x + steps[k][0], ty = y + steps[k][1];
			float *normal = normals + 3 * k * n + i;

			normal[0] = (float)steps[k][0] + random_float(&plan->random, -0.05f, 0.05f);
			normal[n] = (float)steps[k][1] + random_float(&plan->random, -0.05f, 0.05f);
			normal[2 * n] = 0;
			neighbours[k * n + i] = tx < 0 || tx >= end   ? EULER_FAR
						: ty < 0 || ty >= end ? EULER_WALL
								      : ty * end + tx;
		}
	}
}

static void factor_of(void *context, size_t i)
{
	const struct gas *g = context;

	g->factors[i] =
		euler_step_factor(euler_load(g->variables, g->n, (unsigned)i), g->volumes[i]);
}

static void flux_of(void *context, size_t i)
{
	const struct gas *g = context;
	struct euler_state flux =
		euler_flux(g->variables, g->neighbours, g->normals, g->n, (unsigned)i, g->far);

	for (size_t k = 0; k < EULER_VARIABLES; k++)
		g->fluxes[k * g->n + i] = flux.v[k];
}

static void advance(void *context, size_t i)
{
	const struct gas *g = context;
	float factor = g->factors[i] / g->volumes[i];

	for (size_t k = 0; k < EULER_VARIABLES; k++)
		g->variables[k * g->n + i] =
			g->variables[k * g->n + i] - factor * g->fluxes[k * g->n + i];
}

void plan_euler(struct plan *plan, uint32_t side)
{
	uint32_t n = side * side;
	size_t floats = n * sizeof(float);
	struct buffer *variables = plan_buffer(plan, EULER_VARIABLES * floats);
	struct buffer *neighbours = plan_buffer(plan, EULER_FACES * n * sizeof(int));
	struct buffer *normals = plan_buffer(plan, 3 * EULER_FACES * floats);
	struct buffer *volumes = plan_buffer(plan, floats), *factors = plan_buffer(plan, floats);
	struct buffer *fluxes = plan_buffer(plan, EULER_VARIABLES * floats);
	struct buffer *far = plan_buffer(plan, sizeof(struct euler_state));
	float *start = buffer_start(variables);
	struct gas gas = {.n = n, .far = {{1.4f, 1.68f, 0, 0, 3.508f}}};

	fill_mesh(plan, buffer_input(volumes), buffer_input(normals), buffer_input(neighbours),
		  side);
	memcpy(buffer_input(far), &gas.far, sizeof(gas.far));
	for (size_t k = 0; k < EULER_VARIABLES; k++)
		for (size_t i = 0; i < n; i++)
			start[k * n + i] = gas.far.v[k] * random_float(&plan->random, 0.95f, 1.05f);
	gas.variables = memcpy(buffer_want(variables), start, variables->bytes);
	gas.factors = buffer_want(factors);
	gas.fluxes = buffer_want(fluxes);
	gas.volumes = volumes->input;
	gas.normals = normals->input;
	gas.neighbours = neighbours->input;
	for (unsigned step = 0; step < EULER_STEPS; step++) {
		in_parallel(n, factor_of, &gas);
		in_parallel(n, flux_of, &gas);
		in_parallel(n, advance, &gas);
		plan_launch(plan, "euler_step_factors", shape_line(n, 192),
			    ARGUMENT(variables->device), ARGUMENT(volumes->device),
			    ARGUMENT(factors->device), ARGUMENT(n));
		plan_launch(plan, "euler_fluxes", shape_line(n, 192), ARGUMENT(variables->device),
			    ARGUMENT(neighbours->device), ARGUMENT(normals->device),
			    ARGUMENT(fluxes->device), ARGUMENT(n), ARGUMENT(far->device));
		plan_launch(plan, "euler_advance", shape_line(n, 192), ARGUMENT(variables->device),
			    ARGUMENT(factors->device), ARGUMENT(volumes->device),
			    ARGUMENT(fluxes->device), ARGUMENT(n));
	}
}
