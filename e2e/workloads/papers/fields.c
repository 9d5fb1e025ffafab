/* Potentials up to a cutoff, magnetic resonance: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "fields.h"
#include "papers.h"

struct source {
	float x, y, z, weight;
};

struct cube {
	const struct source *atoms;
	float *potential;
	size_t bins;
};

/* Of all atoms in the bins around, in the order of the device. */
static float potential_at(const struct cube *cube, size_t x, size_t y, size_t z)
{
	size_t wide = cube->bins + 2, bx = x / BIN_SIDE, by = y / BIN_SIDE, bz = z / BIN_SIDE;
	float sum = 0;

	for (size_t bin = 0; bin < 27; bin++) {
		size_t at = ((bz + bin / 9) * wide + by + bin / 3 % 3) * wide + bx + bin % 3;

		for (size_t k = at * BIN_ATOMS; k < (at + 1) * BIN_ATOMS; k++) {
			const struct source *atom = &cube->atoms[k];
			float across = atom->x - (float)x, along = atom->y - (float)y;
			float up = atom->z - (float)z;
			float square = across * across + along * along + up * up;

			sum += field_potential(atom->weight, square);
		}
	}
	return sum;
}

static void potential_row(void *context, size_t row)
{
	const struct cube *cube = context;
	size_t side = cube->bins * BIN_SIDE;

	for (size_t x = 0; x < side; x++)
		cube->potential[row * side + x] = potential_at(cube, x, row % side, row / side);
}

/* Bins at the rim are empty: their atoms have no charge. */
static void place_atoms(struct plan *plan, struct source *atoms, size_t bins)
{
	size_t wide = bins + 2;

	for (size_t k = 0; k < wide * wide * wide * BIN_ATOMS; k++) {
		size_t bin = k / BIN_ATOMS,
		       at[] = {bin % wide, bin / wide % wide, bin / wide / wide};
		float place[3], charge = random_float(&plan->random, -2, 2);

		for (unsigned axis = 0; axis < 3; axis++) {
			float corner = ((float)at[axis] - 1) * BIN_SIDE;

			place[axis] = corner + random_float(&plan->random, 0, BIN_SIDE);
			charge = at[axis] == 0 || at[axis] == wide - 1 ? 0 : charge;
		}
		atoms[k] = (struct source){place[0], place[1], place[2], charge};
	}
}

void plan_cutoff(struct plan *plan, uint32_t bins)
{
	size_t wide = bins + 2, side = (size_t)bins * BIN_SIDE;
	struct buffer *atoms =
		plan_buffer(plan, wide * wide * wide * BIN_ATOMS * sizeof(struct source));
	struct buffer *potential = plan_buffer(plan, side * side * side * sizeof(float));
	struct source *place = buffer_input(atoms);
	struct cube cube = {place, buffer_want(potential), bins};
	struct shape shape = {{bins * bins * bins, 1, 1}, {BIN_SIDE, BIN_SIDE, BIN_DEPTH}, 0};

	place_atoms(plan, place, bins);
	in_parallel(side * side, potential_row, &cube);
	plan_launch(plan, "cutoff_potential", shape, ARGUMENT(atoms->device),
		    ARGUMENT(potential->device), ARGUMENT(bins));
}

struct image {
	const struct source *samples;
	const float *at[3];
	float *real, *imaginary;
};

static void image_place(void *context, size_t i)
{
	const struct image *image = context;

	for (unsigned k = 0; k < SAMPLES; k++) {
		const struct source *sample = &image->samples[k];
		float turns = sample->x * image->at[0][i] + sample->y * image->at[1][i] +
			      sample->z * image->at[2][i];

		image->real[i] += sample->weight * field_sine(turns + 0.25f);
		image->imaginary[i] += sample->weight * field_sine(turns);
	}
}

void plan_resonance(struct plan *plan, uint32_t size)
{
	const unsigned passes = 2;
	struct source samples[SAMPLES];
	struct buffer *at[3], *sums[2];
	struct image image = {.samples = samples};

	for (unsigned axis = 0; axis < 3; axis++) {
		at[axis] = plan_buffer(plan, size * sizeof(float));
		image.at[axis] = buffer_input(at[axis]);
		random_floats(&plan->random, at[axis]->input, size, -1, 1);
	}
	for (unsigned part = 0; part < 2; part++) {
		sums[part] = plan_buffer(plan, size * sizeof(float));
		buffer_zeros(sums[part]);
		memset(buffer_want(sums[part]), 0, sums[part]->bytes);
	}
	image.real = sums[0]->want;
	image.imaginary = sums[1]->want;
	for (unsigned k = 0; k < SAMPLES; k++)
		samples[k] = (struct source){
			random_float(&plan->random, -8, 8), random_float(&plan->random, -8, 8),
			random_float(&plan->random, -8, 8), random_float(&plan->random, 0, 1)};
	plan_constant(plan, "samples", samples, sizeof(samples));
	for (unsigned pass = 0; pass < passes; pass++) {
		in_parallel(size, image_place, &image);
		plan_launch(plan, "resonance", shape_line(size, FIELD_THREADS),
			    ARGUMENT(at[0]->device), ARGUMENT(at[1]->device),
			    ARGUMENT(at[2]->device), ARGUMENT(sums[0]->device),
			    ARGUMENT(sums[1]->device), ARGUMENT(size));
	}
}
