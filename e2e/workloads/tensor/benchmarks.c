/* Kernels that work asynchronously on sm_90a: mbarriers, bulk copies, tensor maps, wgmma. Their
 * results are exact: of integers, or of sums of small integers in floats. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "../plan.h"

extern const char tensor_ptx[];

#define STAGES       4u
#define FOLD_WORDS   128u
#define MIX_WORDS    1024u
#define ROWS_A_BLOCK 24u
#define TILE_K       64u
#define DEPTH_MAX    4096u
#define COLUMNS      16u /* different columns of a product, but for a factor */

static uint32_t *words(struct plan *plan, struct buffer **buffer, size_t n)
{
	*buffer = plan_buffer(plan, n * sizeof(uint32_t));
	uint32_t *input = buffer_input(*buffer);

	random_words(&plan->random, input, n);
	return input;
}

static uint32_t fold(const uint32_t *rows, uint32_t block, uint32_t column)
{
	uint32_t sum = block;

	for (uint32_t k = 0; k < ROWS_A_BLOCK; k++)
		sum = sum * 0x9e3779b1u + rows[k * FOLD_WORDS + (column + k) % FOLD_WORDS];
	return sum;
}

static void plan_ring_fold(struct plan *plan, uint32_t blocks)
{
	struct buffer *in, *out = plan_buffer(plan, (size_t)blocks * FOLD_WORDS * sizeof(uint32_t));
	const uint32_t *rows = words(plan, &in, (size_t)blocks * ROWS_A_BLOCK * FOLD_WORDS);
	uint32_t *want = buffer_want(out), count = ROWS_A_BLOCK;

	for (uint32_t b = 0; b < blocks; b++)
		for (uint32_t i = 0; i < FOLD_WORDS; i++)
			want[b * FOLD_WORDS + i] =
				fold(rows + (size_t)b * ROWS_A_BLOCK * FOLD_WORDS, b,
				     FOLD_WORDS - 1 - i);
	plan_launch(plan, "ring_fold", ((struct shape){{blocks, 1, 1}, {160, 1, 1}, 0}),
		    ARGUMENT(in->device), ARGUMENT(out->device), ARGUMENT(count));
}

static void plan_bulk_mix(struct plan *plan, uint32_t blocks)
{
	size_t rows = (size_t)blocks * ROWS_A_BLOCK, n = rows * MIX_WORDS;
	struct buffer *in, *out = plan_buffer(plan, n * sizeof(uint32_t));
	const uint32_t *input = words(plan, &in, n);
	uint32_t *want = buffer_want(out), count = ROWS_A_BLOCK;
	struct shape shape = {{blocks, 1, 1}, {256, 1, 1}, (STAGES + 2) * MIX_WORDS * 4};

	for (size_t r = 0; r < rows; r++)
		for (uint32_t i = 0; i < MIX_WORDS; i++)
			want[r * MIX_WORDS + i] = input[r * MIX_WORDS + (i ^ 5)] * 2654435761u +
						  (uint32_t)(r / ROWS_A_BLOCK + r % ROWS_A_BLOCK);
	plan_launch(plan, "bulk_mix", shape, ARGUMENT(in->device), ARGUMENT(out->device),
		    ARGUMENT(count));
}

/* Boxes have @box_rows rows of 64 elements. */
static CUtensorMap map_of(const struct buffer *buffer, uint32_t rows, uint32_t columns,
			  uint32_t box_rows, bool is_float, CUtensorMapDataType type)
{
	uint32_t size = is_float ? 4 : 2;
	cuuint64_t dims[] = {columns, rows}, strides[] = {(cuuint64_t)columns * size};
	cuuint32_t box[] = {TILE_K, box_rows}, steps[] = {1, 1};
	CUtensorMap map;

	CU(cuTensorMapEncodeTiled(
		&map, type, 2, (void *)buffer->device, dims, strides, box, steps,
		CU_TENSOR_MAP_INTERLEAVE_NONE,
		is_float ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

/* -8 .. 8 */
static uint16_t encode(int value, bool bfloat)
{
	float wide = (float)value;
	uint32_t bits;
	int magnitude = value < 0 ? -value : value, exponent = 0;

	memcpy(&bits, &wide, sizeof(bits));
	if (bfloat)
		return (uint16_t)(bits >> 16);
	if (!value)
		return 0;
	while (magnitude >> (exponent + 1))
		exponent++;
	return (uint16_t)((value < 0) << 15 | (exponent + 15) << 10 |
			  (magnitude << (10 - exponent) & 0x3ff));
}

/* c = a * transposed b. A column of c is one of 16, times a factor: so the CPU need not compute all
 * of them. */
struct product {
	uint32_t n, depth;
	int8_t *a, *pattern, *factor; /* n x depth, COLUMNS x depth, n */
	float *want;
};

static void expect_row(void *context, size_t row)
{
	const struct product *p = context;
	int sums[COLUMNS];

	for (uint32_t c = 0; c < COLUMNS; c++) {
		int sum = 0;

		for (uint32_t k = 0; k < p->depth; k++)
			sum += p->a[row * p->depth + k] * p->pattern[c * p->depth + k];
		sums[c] = sum;
	}
	for (uint32_t c = 0; c < p->n; c++)
		p->want[row * p->n + c] = (float)(sums[c % COLUMNS] * p->factor[c]);
}

static int8_t *small_numbers(struct plan *plan, size_t n, int most)
{
	int8_t *numbers = workload_alloc(n);

	for (size_t i = 0; i < n; i++)
		numbers[i] =
			(int8_t)((int)random_below(&plan->random, 2 * (uint32_t)most + 1) - most);
	return numbers;
}

static void fill(const struct product *p, uint16_t *a, uint16_t *b, bool bfloat)
{
	for (size_t i = 0; i < (size_t)p->n * p->depth; i++) {
		size_t row = i / p->depth, k = i % p->depth;

		a[i] = encode(p->a[i], bfloat);
		b[i] = encode(p->factor[row] * p->pattern[row % COLUMNS * p->depth + k], bfloat);
	}
}

/* Fills @a, @b, and what @c must become. */
static void make_product(struct plan *plan, uint32_t n, uint32_t depth, struct buffer **a,
			 struct buffer **b, struct buffer **c, bool bfloat)
{
	size_t size = (size_t)n * depth;
	struct product p = {.n = n,
			    .depth = depth,
			    .a = small_numbers(plan, size, 2),
			    .pattern = small_numbers(plan, (size_t)COLUMNS * depth, 2),
			    .factor = small_numbers(plan, n, 3)};

	*a = plan_buffer(plan, size * sizeof(uint16_t));
	*b = plan_buffer(plan, size * sizeof(uint16_t));
	*c = plan_buffer(plan, (size_t)n * n * sizeof(float));
	p.want = buffer_want(*c);
	fill(&p, buffer_input(*a), buffer_input(*b), bfloat);
	in_parallel(n, expect_row, &p);
	free(p.a);
	free(p.pattern);
	free(p.factor);
}

static uint32_t depth_of(uint32_t n)
{
	uint32_t depth = (n / 2 + TILE_K - 1) / TILE_K * TILE_K;

	return depth < DEPTH_MAX ? depth : DEPTH_MAX;
}

static void plan_gemm_specialised(struct plan *plan, uint32_t tiles)
{
	uint32_t n = tiles * 128, depth = depth_of(n), steps = depth / TILE_K;
	struct shape shape = {{tiles, tiles, 1}, {384, 1, 1}, STAGES * 2 * 128 * TILE_K * 2};
	struct buffer *a, *b, *c;
	CUtensorMap left, right;

	make_product(plan, n, depth, &a, &b, &c, true);
	left = map_of(a, n, depth, 128, false, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
	right = map_of(b, n, depth, 128, false, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
	plan_launch(plan, "gemm_specialised", shape, ARGUMENT_OF(left), ARGUMENT_OF(right),
		    ARGUMENT(c->device), ARGUMENT(n), ARGUMENT(steps));
}

static void plan_gemm_pipelined(struct plan *plan, uint32_t tiles)
{
	uint32_t n = tiles * 64, depth = depth_of(n), steps = depth / TILE_K;
	struct shape shape = {{tiles, tiles, 1}, {128, 1, 1}, STAGES * 2 * 64 * TILE_K * 2};
	struct buffer *a, *b, *c;
	CUtensorMap left, right, out;

	make_product(plan, n, depth, &a, &b, &c, false);
	left = map_of(a, n, depth, 64, false, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
	right = map_of(b, n, depth, 64, false, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
	out = map_of(c, n, n, 64, true, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
	plan_launch(plan, "gemm_pipelined", shape, ARGUMENT_OF(left), ARGUMENT_OF(right),
		    ARGUMENT_OF(out), ARGUMENT(steps));
}

#define BENCHMARK(name_, function, unit_, ...)                                          \
	{                                                                               \
		.name = name_, .source = "sm_90a", .ptx = tensor_ptx, .plan = function, \
		.unit = unit_, .sizes = {                                               \
			__VA_ARGS__                                                     \
		}                                                                       \
	}
#define CLASSES(large, small, trivial) \
	{                              \
		large, small, trivial  \
	}
const struct benchmark benchmarks[] = {
	BENCHMARK("ring-fold", plan_ring_fold, "blocks", CLASSES(2000, 300, 16),
		  CLASSES(1u << 17, 1u << 14, 500)),
	BENCHMARK("bulk-mix", plan_bulk_mix, "blocks", CLASSES(200, 60, 12),
		  CLASSES(1u << 13, 1u << 11, 100)),
	BENCHMARK("gemm-specialised", plan_gemm_specialised, "tiles along an edge",
		  CLASSES(4, 3, 2), CLASSES(96, 40, 8)),
	BENCHMARK("gemm-pipelined", plan_gemm_pipelined, "tiles along an edge", CLASSES(8, 5, 3),
		  CLASSES(128, 64, 12)),
};
const size_t benchmark_count = countof(benchmarks);
const char *const benchmark_summary = "runs kernels for tensor cores and checks their results";
