/* The Canny edge detector: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "canny.h"
#include "papers.h"

static const int gauss_weights[25] = {2,  4, 5, 4, 2,  4, 9, 12, 9, 4, 5, 12, 15,
				      12, 5, 4, 9, 12, 9, 4, 2,  4, 5, 4, 2};

/* Images as the stages leave them; @n x @n. */
struct image {
	int n;
	const uint8_t *in;
	uint8_t *smooth, *direction, *thin, *edges;
	uint16_t *size;
};

static int clamp(int x, int n)
{
	return x < 0 ? 0 : x < n ? x : n - 1;
}

static int around(const struct image *m, const uint8_t *plane, int x, int y)
{
	return plane[(size_t)clamp(y, m->n) * (size_t)m->n + (size_t)clamp(x, m->n)];
}

static void gauss_row(void *context, size_t row)
{
	const struct image *m = context;

	for (int x = 0; x < m->n; x++) {
		int sum = 0;

		for (int k = 0; k < 25; k++)
			sum += gauss_weights[k] *
			       around(m, m->in, x + k % 5 - 2, (int)row + k / 5 - 2);
		m->smooth[row * (size_t)m->n + (size_t)x] = (uint8_t)(sum / 159);
	}
}

static void sobel_row(void *context, size_t row)
{
	static const int weights[9] = {-1, 0, 1, -2, 0, 2, -1, 0, 1};
	const struct image *m = context;

	for (int x = 0; x < m->n; x++) {
		size_t at = row * (size_t)m->n + (size_t)x;
		int gx = 0, gy = 0;

		for (int k = 0; k < 9; k++) {
			int value = around(m, m->smooth, x + k % 3 - 1, (int)row + k / 3 - 1);

			gx += weights[k] * value;
			gy += weights[k % 3 * 3 + k / 3] * value;
		}
		int ax = abs(gx), ay = abs(gy);
		m->size[at] = (uint16_t)(ax + ay);
		m->direction[at] = 5 * ay < 2 * ax        ? 0
				   : 5 * ax < 2 * ay      ? 2
				   : (gx < 0) == (gy < 0) ? 1
							  : 3;
	}
}

static void thin_row(void *context, size_t row)
{
	const struct image *m = context;
	const int steps[4] = {1, m->n + 1, m->n, m->n - 1};

	for (int x = 0; x < m->n; x++) {
		size_t at = row * (size_t)m->n + (size_t)x;
		bool rim = x == 0 || x == m->n - 1 || row == 0 || (int)row == m->n - 1;

		m->thin[at] = EDGE_NONE;
		if (rim || m->size[at] < WEAK_FROM)
			continue;
		size_t step = (size_t)steps[m->direction[at]];
		if (m->size[at] >= m->size[at - step] && m->size[at] >= m->size[at + step])
			m->thin[at] = m->size[at] >= STRONG_FROM ? EDGE_STRONG : EDGE_WEAK;
	}
}

/* Pixels that are to be followed. */
struct trail {
	uint32_t *pixels;
	size_t count;
};

/* Weak neighbours of pixel @at become strong and go to @same if they are in its block, else to
 * @other. */
static void spread(const struct image *m, int at, struct trail *same, struct trail *other)
{
	int x = at % m->n, y = at / m->n;

	for (int k = 0; k < 9; k++) {
		int nx = clamp(x + k % 3 - 1, m->n), ny = clamp(y + k / 3 - 1, m->n);
		int to = ny * m->n + nx;
		bool here = nx / CANNY_SIDE == x / CANNY_SIDE && ny / CANNY_SIDE == y / CANNY_SIDE;
		struct trail *trail = here ? same : other;

		if (m->edges[to] != EDGE_WEAK)
			continue;
		m->edges[to] = EDGE_STRONG;
		trail->pixels[trail->count++] = (uint32_t)to;
	}
}

/* Follows edges from the strong pixels on. The first launch sees those in the blocks around its
 * own; what a block finds out its neighbours see in the next. Returns a number of launches that is
 * enough. */
static unsigned follow(const struct image *m)
{
	int count = m->n * m->n;
	cleanup(freep) uint32_t *memory = workload_alloc(2 * (size_t)count * sizeof(*memory));
	struct trail now = {memory, 0}, next = {memory + count, 0};
	unsigned launches = 1;

	memcpy(m->edges, m->thin, (size_t)count);
	for (int i = 0; i < count; i++)
		if (m->thin[i] == EDGE_STRONG)
			spread(m, i, &now, &now);
	for (;; launches++) {
		while (now.count)
			spread(m, (int)now.pixels[--now.count], &now, &next);
		if (!next.count)
			return launches;
		struct trail done = now;
		now = next;
		next = done;
	}
}

/* Squares and dots of any brightness on noise. */
static void draw(struct random *random, uint8_t *pixels, uint32_t n)
{
	for (size_t i = 0; i < (size_t)n * n; i++)
		pixels[i] = (uint8_t)random_below(random, 40);
	for (uint32_t k = 0; k < n / 3 + 2; k++) {
		uint32_t left = random_below(random, n), top = random_below(random, n);
		uint32_t side = 1 + random_below(random, 40), light = random_below(random, 216);

		for (uint32_t y = top; y < top + side && y < n; y++)
			for (uint32_t x = left; x < left + side && x < n; x++)
				pixels[(size_t)y * n + x] =
					(uint8_t)(light + pixels[(size_t)y * n + x] % 40);
	}
}

void plan_canny(struct plan *plan, uint32_t n)
{
	size_t count = (size_t)n * n;
	struct buffer *in = plan_buffer(plan, count), *smooth = plan_buffer(plan, count);
	struct buffer *size = plan_buffer(plan, 2 * count), *direction = plan_buffer(plan, count);
	struct buffer *edges = plan_buffer(plan, count);
	cleanup(freep) uint8_t *thin = workload_alloc(count);
	struct image m = {(int)n, buffer_input(in),   buffer_want(smooth), buffer_want(direction),
			  thin,   buffer_want(edges), buffer_want(size)};
	struct shape shape = shape_plane(n, n, CANNY_SIDE, CANNY_SIDE);

	draw(&plan->random, in->input, n);
	in_parallel(n, gauss_row, &m);
	in_parallel(n, sobel_row, &m);
	in_parallel(n, thin_row, &m);
	plan_constant(plan, "gauss_weights", gauss_weights, sizeof(gauss_weights));
	plan_launch(plan, "canny_gauss", shape, ARGUMENT(in->device), ARGUMENT(smooth->device),
		    ARGUMENT(m.n), ARGUMENT(m.n));
	plan_launch(plan, "canny_sobel", shape, ARGUMENT(smooth->device), ARGUMENT(size->device),
		    ARGUMENT(direction->device), ARGUMENT(m.n), ARGUMENT(m.n));
	plan_launch(plan, "canny_thin", shape, ARGUMENT(size->device), ARGUMENT(direction->device),
		    ARGUMENT(edges->device), ARGUMENT(m.n), ARGUMENT(m.n));
	for (unsigned launches = follow(&m); launches; launches--)
		plan_launch(plan, "canny_follow", shape, ARGUMENT(edges->device), ARGUMENT(m.n),
			    ARGUMENT(m.n));
}
