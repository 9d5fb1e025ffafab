#include "measure/predict-ridge.h"

#include <string.h>

#include "weir/base.h"

#define PENALTY    1e-3           /* to the variance of a feature */
#define MOVED      0.01           /* of a point's mean: the model is made anew */
#define ERROR_MAX  0.5            /* a model that is no better is none */
#define DEGENERATE 1e-9           /* variance to mean square of a feature that does not vary */
#define FAR        4.0            /* times the largest or smallest value that was seen */
#define SIZE_MOST  0x10000000000u /* no argument that is a size is larger */
#define CLAMP      8.0            /* times the longest or shortest time */

/* A double and its bits. */
union number {
	double x;
	uint64_t bits;
};

/* x = m * 2^e with m around 1; ln m = 2 atanh((m - 1) / (m + 1)) as a series. */
double ridge_log2(double x)
{
	uint64_t bits = (union number){.x = x}.bits;
	double e = (double)(int)(bits >> 52) - 1023;
	double m = (union number){.bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u}.x;

	if (m > 1.4142135623730951) {
		m /= 2;
		e += 1;
	}
	double s = (m - 1) / (m + 1), square = s * s, sum = 0;
	for (int i = 13; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return e + 2 * s * sum * 1.4426950408889634;
}

double ridge_exp2(double x)
{
	int e = (int)(x < 0 ? x - 0.5 : x + 0.5);
	double y = (x - e) * 0.6931471805599453, sum = 1;

	for (int i = 11; i > 0; i--)
		sum = 1 + sum * y / i;
	return sum * (union number){.bits = (uint64_t)(e + 1023) << 52}.x;
}

void ridge_describe(double x[RIDGE_FEATURES], const unsigned grid[3], const unsigned block[3],
		    unsigned shared, const uint64_t scalars[RIDGE_SCALARS])
{
	x[0] = (double)grid[0] * grid[1] * grid[2];
	x[1] = (double)block[0] * block[1] * block[2];
	x[2] = shared;
	for (size_t i = 0; i < RIDGE_SCALARS; i++)
		x[3 + i] = scalars[i] < SIZE_MOST ? (double)scalars[i] : 0;
}

static double shaped(enum ridge_shape shape, double x)
{
	return shape == RIDGE_POWER ? ridge_log2(1 + x) : x;
}

static bool in_range(const double x[RIDGE_FEATURES], double ns)
{
	if (!(ns >= 1 && ns <= RIDGE_NS_MOST))
		return false;
	for (size_t j = 0; j < RIDGE_FEATURES; j++) {
		if (!(x[j] >= 0 && x[j] <= RIDGE_MOST))
			return false;
	}
	return true;
}

static double distance(const double a[RIDGE_FEATURES], const double b[RIDGE_FEATURES])
{
	double sum = 0;

	for (size_t j = 0; j < RIDGE_FEATURES; j++)
		sum += (a[j] - b[j]) * (a[j] - b[j]);
	return sum;
}

/* The older one of the two most alike. */
static size_t most_redundant(const struct ridge *ridge)
{
	double logs[RIDGE_POINTS][RIDGE_FEATURES], least = -1;
	size_t found = 0;

	for (size_t i = 0; i < ridge->n; i++) {
		for (size_t j = 0; j < RIDGE_FEATURES; j++)
			logs[i][j] = ridge_log2(1 + ridge->points[i].x[j]);
	}
	for (size_t i = 0; i < ridge->n; i++) {
		for (size_t k = i + 1; k < ridge->n; k++) {
			double between = distance(logs[i], logs[k]);
			if (least < 0 || between < least) {
				least = between;
				found = i;
			}
		}
	}
	return found;
}

static void drop(struct ridge *ridge, size_t i)
{
	ridge->n--;
	memmove(&ridge->points[i], &ridge->points[i + 1],
		(ridge->n - i) * sizeof(ridge->points[0]));
}

static bool move(struct ridge_point *point, double ns)
{
	double before = point->ns;

	point->ns = ridge_mean(before, ns);
	return point->ns > before * (1 + MOVED) || point->ns < before * (1 - MOVED);
}

bool ridge_learn(struct ridge *ridge, const double x[RIDGE_FEATURES], double ns)
{
	struct ridge_point point = {.ns = ns};

	if (!in_range(x, ns))
		return false;
	memcpy(point.x, x, sizeof(point.x));
	for (size_t i = 0; i < ridge->n; i++) {
		if (distance(ridge->points[i].x, x) == 0)
			return move(&ridge->points[i], ns);
	}
	if (ridge->n == RIDGE_POINTS)
		drop(ridge, most_redundant(ridge));
	ridge->points[ridge->n++] = point;
	return true;
}

/* Weighted sums over all points but one, and the equations that they make: of each feature that
 * varies there, symmetric, of which the lower half is used. */
struct equations {
	double mean[RIDGE_FEATURES], mean_y;
	double matrix[RIDGE_FEATURES][RIDGE_FEATURES], right[RIDGE_FEATURES];
	size_t feature[RIDGE_FEATURES], n;
};

/* Points in the shape that is fitted. */
struct shaped_points {
	double x[RIDGE_POINTS][RIDGE_FEATURES], y[RIDGE_POINTS], weight[RIDGE_POINTS];
	size_t n;
};

static void shape_points(struct shaped_points *out, const struct ridge *ridge,
			 enum ridge_shape shape)
{
	out->n = ridge->n;
	for (size_t i = 0; i < ridge->n; i++) {
		const struct ridge_point *point = &ridge->points[i];
		for (size_t j = 0; j < RIDGE_FEATURES; j++)
			out->x[i][j] = shaped(shape, point->x[j]);
		out->y[i] = shape == RIDGE_POWER ? ridge_log2(point->ns) : point->ns;
		/* Errors of logarithms are relative ones as they are. */
		out->weight[i] = shape == RIDGE_POWER ? 1 : 1 / (point->ns * point->ns);
	}
}

static void take_means(struct equations *e, const struct shaped_points *p, size_t without)
{
	double total = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (i == without)
			continue;
		total += p->weight[i];
		e->mean_y += p->weight[i] * p->y[i];
		for (size_t j = 0; j < RIDGE_FEATURES; j++)
			e->mean[j] += p->weight[i] * p->x[i][j];
	}
	e->mean_y /= total;
	for (size_t j = 0; j < RIDGE_FEATURES; j++)
		e->mean[j] /= total;
}

static void find_varying(struct equations *e, const struct shaped_points *p, size_t without)
{
	for (size_t j = 0; j < RIDGE_FEATURES; j++) {
		double square = 0, variance = 0;
		for (size_t i = 0; i < p->n; i++) {
			double off = p->x[i][j] - e->mean[j];
			if (i == without)
				continue;
			variance += p->weight[i] * off * off;
			square += p->weight[i] * p->x[i][j] * p->x[i][j];
		}
		if (variance > DEGENERATE * square)
			e->feature[e->n++] = j;
	}
}

/* The penalty of a weight is in proportion to its feature's variance, so units do not matter. */
static void set_up(struct equations *e, const struct shaped_points *p, size_t without)
{
	*e = (struct equations){.n = 0};
	take_means(e, p, without);
	find_varying(e, p, without);
	for (size_t i = 0; i < p->n; i++) {
		if (i == without)
			continue;
		for (size_t a = 0; a < e->n; a++) {
			size_t j = e->feature[a];
			double off = p->weight[i] * (p->x[i][j] - e->mean[j]);
			e->right[a] += off * (p->y[i] - e->mean_y);
			for (size_t b = 0; b <= a; b++) {
				size_t k = e->feature[b];
				e->matrix[a][b] += off * (p->x[i][k] - e->mean[k]);
			}
		}
	}
	for (size_t a = 0; a < e->n; a++)
		e->matrix[a][a] *= 1 + PENALTY;
}

/* Cholesky's, without roots: the matrix is L D L', L below its diagonal and D on it. The penalty
 * keeps D away from 0. The result replaces the right side. */
static void solve(struct equations *e)
{
	for (size_t a = 0; a < e->n; a++) {
		for (size_t b = 0; b < a; b++) {
			for (size_t k = 0; k < b; k++)
				e->matrix[a][b] -=
					e->matrix[a][k] * e->matrix[b][k] * e->matrix[k][k];
			e->matrix[a][b] /= e->matrix[b][b];
			e->matrix[a][a] -= e->matrix[a][b] * e->matrix[a][b] * e->matrix[b][b];
			e->right[a] -= e->matrix[a][b] * e->right[b];
		}
	}
	for (size_t a = e->n; a-- > 0;) {
		e->right[a] /= e->matrix[a][a];
		for (size_t b = a + 1; b < e->n; b++)
			e->right[a] -= e->matrix[b][a] * e->right[b];
	}
}

static void fit_without(struct ridge_model *model, const struct shaped_points *p, size_t without)
{
	struct equations e;

	set_up(&e, p, without);
	solve(&e);
	model->bias = e.mean_y;
	memset(model->weights, 0, sizeof(model->weights));
	for (size_t a = 0; a < e.n; a++) {
		model->weights[e.feature[a]] = e.right[a];
		model->bias -= e.right[a] * e.mean[e.feature[a]];
	}
}

static void note_ranges(struct ridge_model *model, const struct ridge *ridge)
{
	for (size_t i = 0; i < ridge->n; i++) {
		const struct ridge_point *point = &ridge->points[i];
		for (size_t j = 0; j < RIDGE_FEATURES; j++) {
			if (i == 0 || point->x[j] < model->low[j])
				model->low[j] = point->x[j];
			if (i == 0 || point->x[j] > model->high[j])
				model->high[j] = point->x[j];
		}
		if (i == 0 || point->ns < model->shortest)
			model->shortest = point->ns;
		if (i == 0 || point->ns > model->longest)
			model->longest = point->ns;
	}
}

static double evaluate(const struct ridge_model *model, const double x[RIDGE_FEATURES])
{
	double sum = model->bias;

	for (size_t j = 0; j < RIDGE_FEATURES; j++) {
		if (model->weights[j] != 0)
			sum += model->weights[j] * shaped(model->shape, x[j]);
	}
	if (model->shape == RIDGE_POWER)
		sum = sum < -1000 ? 0 : sum > 1000 ? RIDGE_NS_MOST : ridge_exp2(sum);
	if (!(sum > model->shortest / CLAMP))
		return model->shortest / CLAMP;
	return sum < model->longest * CLAMP ? sum : model->longest * CLAMP;
}

/* Of a model of this shape, or more than @most. */
static double left_out_error(struct ridge_model *model, const struct ridge *ridge,
			     const struct shaped_points *p, double most)
{
	double sum = 0, n = (double)ridge->n;

	for (size_t i = 0; i < ridge->n && sum <= most * n; i++) {
		fit_without(model, p, i);
		double off = evaluate(model, ridge->points[i].x) / ridge->points[i].ns - 1;
		sum += off < 0 ? -off : off;
	}
	return sum / n;
}

bool ridge_fit(const struct ridge *ridge, struct ridge_model *model)
{
	static const enum ridge_shape shapes[] = {RIDGE_LINEAR, RIDGE_POWER};
	struct ridge_model best = {.error = ERROR_MAX};

	for (size_t s = 0; s < countof(shapes) && ridge->n >= RIDGE_LEAST; s++) {
		struct ridge_model candidate = {.shape = shapes[s]};
		struct shaped_points points;
		shape_points(&points, ridge, shapes[s]);
		note_ranges(&candidate, ridge);
		candidate.error = left_out_error(&candidate, ridge, &points, best.error);
		if (!(candidate.error < best.error))
			continue;
		fit_without(&candidate, &points, ridge->n);
		best = candidate;
	}
	*model = best;
	return model->shape != RIDGE_NONE;
}

double ridge_predict(const struct ridge_model *model, const double x[RIDGE_FEATURES])
{
	if (model->shape == RIDGE_NONE)
		return 0;
	for (size_t j = 0; j < RIDGE_FEATURES; j++) {
		/* 0 counts as 1. */
		if (!(x[j] >= 0 && 1 + x[j] <= (1 + model->high[j]) * FAR &&
		      (1 + x[j]) * FAR >= 1 + model->low[j]))
			return 0;
	}
	return evaluate(model, x);
}
