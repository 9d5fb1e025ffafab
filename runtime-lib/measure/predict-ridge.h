/* Kernel times by regression: from a kernel's times at several sizes to its times at others (FLEP,
 * section 4.2). A model of one kernel is ridge regression in closed form over a few features of its
 * launches. Of two shapes the one stays that predicts each point best from the others:
 *
 *	linear	ns = bias + sum(weight * x), with relative errors minimised
 *	power	log ns = bias + sum(weight * log(1 + x)): times of products and powers of sizes
 *
 * Pure, of fixed size, and without libm, which a process need not have. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIDGE_SCALARS  9 /* arguments that a model uses */
#define RIDGE_FEATURES (3 + RIDGE_SCALARS)
#define RIDGE_POINTS   24
#define RIDGE_LEAST    3 /* points that make a model */

/* A size, and the running mean of the times measured there. */
struct ridge_point {
	double x[RIDGE_FEATURES]; /* each 0 .. RIDGE_MOST */
	double ns;
};

struct ridge {
	struct ridge_point points[RIDGE_POINTS]; /* oldest first */
	size_t n;
};

#define RIDGE_MOST    0x1p63
#define RIDGE_NS_MOST 0x1p60 /* a generation */

enum ridge_shape { RIDGE_NONE, RIDGE_LINEAR, RIDGE_POWER };

/* What the launch path reads. */
struct ridge_model {
	enum ridge_shape shape;
	double bias, weights[RIDGE_FEATURES];             /* 0: irrelevant, or never varied */
	double low[RIDGE_FEATURES], high[RIDGE_FEATURES]; /* of the points */
	double shortest, longest;                         /* ns, of the points */
	double error; /* mean relative error, each point predicted by the others */
};

/* The features of a launch: blocks, threads of a block, dynamic shared memory, and the arguments of
 * 1 to 8 bytes as unsigned numbers. A value that cannot be a size, such as a pointer, counts as 0.
 */
void ridge_describe(double x[RIDGE_FEATURES], const unsigned grid[3], const unsigned block[3],
		    unsigned shared, const uint64_t scalars[RIDGE_SCALARS]);

/* Learns a measurement; ignores values out of range. If all points are taken it replaces the older
 * of the two most similar ones. True: a model may change. */
bool ridge_learn(struct ridge *ridge, const double x[RIDGE_FEATURES], double ns);

/* False: too few sizes, or no model predicts them; then @model is RIDGE_NONE. */
bool ridge_fit(const struct ridge *ridge, struct ridge_model *model);

/* ns; 0: not known, also for a size far from all points. */
double ridge_predict(const struct ridge_model *model, const double x[RIDGE_FEATURES]);

/* A running mean of times. Others on the GPU can only lengthen a kernel, so a shorter time counts
 * for more. */
static inline double ridge_mean(double mean, double ns)
{
	return mean <= 0 || ns < mean ? ns : mean + (ns - mean) / 8;
}

/* Exact to 1e-9: for finite positive numbers, and for -1000 .. 1000. */
double ridge_log2(double x);
double ridge_exp2(double x);
