/* Products of matrices in shared memory. They are complete at once; for the other warps of the warp
 * group only at the wait (barrier.c). Sums of integers are exact, as on the hardware; others differ
 * in their last bits. */
#include "simcuda/ptx/execute/async/wgmma.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/half.h"
#include "simcuda/ptx/execute/warp.h"

#define WARP_ROWS 16u

/* A matrix in shared memory, as its descriptor says: rows of `depth` elements that are consecutive.
 */
struct source {
	const struct ptx_block *block;
	uint32_t start, leading,
		stride; /* bytes: to the next 16 bytes of a row; to the next 8 rows */
	uint32_t width; /* bytes of a swizzled row; 0: not swizzled */
};

static struct source source_of(const struct ptx_warp *w, const struct ptx_insn *i,
			       enum ptx_matrix_operand which)
{
	static const uint32_t widths[] = {0, 128, 64, 32};
	uint64_t bits = *(const uint64_t *)ptx_row(w, i->op[which]);

	return (struct source){.block = w->block,
			       .start = (uint32_t)(bits & 0x3fff) << 4,
			       .leading = (uint32_t)(bits >> 16 & 0x3fff) << 4,
			       .stride = (uint32_t)(bits >> 32 & 0x3fff) << 4,
			       .width = widths[bits >> 62]};
}

static float widen(const struct ptx_matrix *m, uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;

	if (!m->bfloat)
		return (float)ptx_from_f16(bits);
	memcpy(&value, &wide, sizeof(value));
	return value;
}

/* False: outside of the block's shared memory. */
static bool element(const struct source *s, uint32_t row, uint32_t k, uint16_t *out)
{
	uint32_t at = s->start + row / 8 * s->stride;

	if (s->width) {
		at += row % 8 * s->width + k * 2;
		at ^= (at >> 7 & (s->width / 16 - 1)) << 4;
	} else {
		at += k / 8 * s->leading + row % 8 * 16 + k % 8 * 2;
	}
	if (at + sizeof(*out) > s->block->shared_bytes)
		return false;
	memcpy(out, s->block->shared + at, sizeof(*out));
	return true;
}

typedef float matrix_rows[][PTX_MATRIX_DEPTH];

static bool load(const struct ptx_matrix *m, const struct source *s, uint32_t first, uint32_t rows,
		 matrix_rows out)
{
	uint16_t bits;

	for (uint32_t r = 0; r < rows; r++) {
		for (uint32_t k = 0; k < PTX_MATRIX_DEPTH; k++) {
			if (!element(s, first + r, k, &bits))
				return false;
			out[r][k] = widen(m, bits);
		}
	}
	return true;
}

/* Each register has two elements of a row. */
static void load_registers(const struct ptx_warp *w, const struct ptx_matrix *m, matrix_rows out)
{
	for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t bits = ((const uint32_t *)ptx_row(w, m->a[k]))[lane];
			uint32_t row = lane / 4 + k % 2 * 8, column = lane % 4 * 2 + k / 2 * 8;

			out[row][column] = widen(m, (uint16_t)bits);
			out[row][column + 1] = widen(m, (uint16_t)(bits >> 16));
		}
	}
}

static float dot(const float *a, const float *b)
{
	float sum = 0;

	for (uint32_t k = 0; k < PTX_MATRIX_DEPTH; k++)
		sum += a[k] * b[k];
	return sum;
}

static void multiply(const struct ptx_warp *w, const struct ptx_matrix *m, bool add, matrix_rows a,
		     matrix_rows b)
{
	for (uint32_t k = 0; k < m->columns / 2; k++) {
		float *d = ptx_row(w, m->d[k]);

		for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
			uint32_t row = lane / 4 + k / 2 % 2 * 8;
			uint32_t column = k / 4 * 8 + lane % 4 * 2 + k % 2;
			float product = dot(a[row], b[column]);

			d[lane] = (add ? d[lane] : 0) + (m->negative ? -product : product);
		}
	}
}

enum ptx_flow ptx_exec_wgmma(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_matrix *m = i->matrix;
	struct source left = source_of(w, i, PTX_MATRIX_A), right = source_of(w, i, PTX_MATRIX_B);
	float a[WARP_ROWS][PTX_MATRIX_DEPTH], b[PTX_MATRIX_COLUMNS][PTX_MATRIX_DEPTH];
	bool add = *(const uint32_t *)ptx_row(w, i->op[PTX_MATRIX_ADD]) & 1;

	if (mask != PTX_ALL_LANES)
		return ptx_fault(w, i, "only a part of the warp comes here");
	if (m->a_in_registers)
		load_registers(w, m, a);
	if ((!m->a_in_registers &&
	     !load(m, &left, w->index % PTX_GROUP_WARPS * WARP_ROWS, WARP_ROWS, a)) ||
	    !load(m, &right, 0, m->columns, b))
		return ptx_fault(w, i, "a matrix that is not in shared memory");
	multiply(w, m, add, a, b);
	return PTX_NEXT;
}
