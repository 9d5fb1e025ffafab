/* Runs what nvcc makes of ptx-kernels.cu, for several architectures, against the same computed
 * here. */
#include "ptx-fixture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef PTX_KERNELS
#error "PTX_KERNELS is the prefix of the compiled kernels"
#endif

static const char *const targets[] = {"75", "90", "120"};
static struct ptx_module *module;

static int load(void **state)
{
	char path[512];

	snprintf(path, sizeof(path), "%s-%s.ptx", PTX_KERNELS, (const char *)*state);
	module = fixture_load_file(path);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	ptx_module_free(module);
	return 0;
}

static void matmul(void **state)
{
	enum { SIZE = 32 };
	static float a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];
	struct {
		float *a, *b, *c;
		int n;
	} params = {a, b, c, SIZE};

	(void)state;
	for (int i = 0; i < SIZE * SIZE; i++) {
		a[i] = (float)(i % 13);
		b[i] = (float)(i % 7) - 3;
	}
	fixture_must_run(module, "matmul", DIM(SIZE / 16, SIZE / 16), DIM(16, 16), 0, &params);
	for (int y = 0; y < SIZE; y++) {
		for (int x = 0; x < SIZE; x++) {
			float sum = 0;
			for (int k = 0; k < SIZE; k++)
				sum += a[y * SIZE + k] * b[k * SIZE + x];
			assert_true(c[y * SIZE + x] == sum);
		}
	}
}

static void reduce(void **state)
{
	enum { N = 10000 };
	static int in[N];
	uint64_t out = 0;
	int64_t want = 0;
	struct {
		int *in;
		uint64_t *out;
		int n;
	} params = {in, &out, N};

	(void)state;
	for (int i = 0; i < N; i++)
		want += in[i] = i * 7 - 20000;
	fixture_must_run(module, "reduce", DIM(5), DIM(128), 0, &params);
	assert_int_equal((int64_t)out, want);
}

static void histogram(void **state)
{
	enum { N = 5000 };
	static uint8_t in[N];
	unsigned out[256] = {0}, want[256] = {0};
	struct {
		uint8_t *in;
		unsigned *out;
		int n;
	} params = {in, out, N};

	(void)state;
	for (int i = 0; i < N; i++)
		want[in[i] = (uint8_t)(i * i + i / 3)]++;
	fixture_must_run(module, "histogram", DIM(3), DIM(96), sizeof(out), &params);
	assert_memory_equal(out, want, sizeof(out));
}

enum { SAMPLES = 64, RESULTS = 16 };

static double round_all(double x)
{
	return floor(x) + ceil(x) + trunc(x) + rint(x) + round(x);
}

/* What the kernels compute of x, exactly enough. */
static void reference(double x, bool single, double out[RESULTS])
{
	double divisor = single ? (double)3.1f : 3.1, rest = single ? (double)0.7f : 0.7;
	double power = single ? (double)1.7f : 1.7;
	const double values[RESULTS] = {
		sin(x),
		cos(x),
		exp(x),
		log(fabs(x)),
		pow(fabs(x), power),
		tanh(x),
		sqrt(fabs(x)),
		1 / x,
		x / divisor,
		1 / sqrt(fabs(x)),
		erf(x),
		fmod(x, rest),
		single ? sin(x) : lgamma(fabs(x) + 0.5),
		cbrt(x),
		round_all(x),
		atan2(x, 2),
	};

	memcpy(out, values, sizeof(values));
}

static void check_results(double x, const double *got, bool single)
{
	double want[RESULTS];

	reference(x, single, want);
	for (int k = 0; k < RESULTS; k++) {
		double scale = fabs(want[k]) > 1e-3 ? fabs(want[k]) : 1e-3;
		double error = fabs(got[k] - want[k]) / scale;
		/* __sinf knows small arguments only. */
		double bound = !single ? 1e-14 : k == 12 ? 1e-4 * (1 + fabs(x)) : 4e-6;
		if (!(error < bound))
			fail_msg("function %d of %g gives %.17g, not %.17g", k, x, got[k], want[k]);
	}
}

static double sample(int i)
{
	return (i - 31.5) * 0.37 * (i % 5 == 0 ? 30 : 1);
}

static void single_math(void **state)
{
	float in[SAMPLES], out[SAMPLES][RESULTS];
	struct {
		float *in;
		float *out;
		int n;
	} params = {in, out[0], SAMPLES};

	(void)state;
	for (int i = 0; i < SAMPLES; i++)
		in[i] = (float)sample(i) / (i % 5 == 0 ? 10 : 1);
	in[0] = 200000; /* reduced by table */
	fixture_must_run(module, "single_math", DIM(2), DIM(40), 0, &params);
	for (int i = 1; i < SAMPLES; i++) {
		double wide[RESULTS];
		for (int k = 0; k < RESULTS; k++)
			wide[k] = (double)out[i][k];
		check_results((double)in[i], wide, true);
	}
	assert_true(fabs((double)out[0][0] - sin(200000)) < 1e-6);
	assert_true(isinf(out[0][2]));
}

static void double_math(void **state)
{
	double in[SAMPLES], out[SAMPLES][RESULTS];
	struct {
		double *in;
		double *out;
		int n;
	} params = {in, out[0], SAMPLES};

	(void)state;
	for (int i = 0; i < SAMPLES; i++)
		in[i] = sample(i);
	in[0] = 1e10;
	fixture_must_run(module, "double_math", DIM(2), DIM(40), 0, &params);
	for (int i = 1; i < SAMPLES; i++)
		check_results(in[i], out[i], false);
	assert_true(fabs(out[0][0] - sin(1e10)) < 1e-14);
}

static int chosen(int kind, int i)
{
	switch (kind) {
	case 0:
		return i * 3;
	case 1:
		return i ^ 0x55;
	case 2:
		return i / 7;
	case 3:
		return i % 11;
	case 4:
		return -i;
	case 5:
		return i << 3;
	case 6:
		return __builtin_popcount((unsigned)i);
	case 7:
		return i ? __builtin_clz((unsigned)i) : 32;
	default:
		return 12345;
	}
}

static void choose(void **state)
{
	enum { N = 100 };
	int in[N], out[N];
	struct {
		int *in, *out;
		int n;
	} params = {in, out, N};

	(void)state;
	for (int i = 0; i < N; i++)
		in[i] = (i * 5) % 10 - 1;
	fixture_must_run(module, "choose", DIM(4), DIM(32), 0, &params);
	for (int i = 0; i < N; i++)
		assert_int_equal(out[i], chosen(in[i], i));
}

struct record {
	int kind;
	double factor;
	short offsets[3];
	char name[5];
};

static void calls(void **state)
{
	enum { N = 50 };
	double out[N];
	struct {
		struct record r;
		double *out;
		int n;
	} params = {{1, 2.5, {10, -20, 30}, "abcd"}, out, N};

	(void)state;
	fixture_must_run(module, "calls", DIM(2), DIM(32), 0, &params);
	for (int i = 0; i < N; i++) {
		double first = 2.5 * i + params.r.offsets[(1 + i) % 3];
		double second = i & 1 ? 2.5 - i + 'a' : 2.5 * i - 20;
		assert_true(out[i] == first + second);
	}
}

static void recursion(void **state)
{
	int out[32], *pointer = out;

	(void)state;
	fixture_must_run(module, "recursion", DIM(1), DIM(32), 0, &pointer);
	for (int i = 0, want; i < 32; i++) {
		want = 1;
		for (int k = 2; k <= i % 10; k++)
			want *= k;
		assert_int_equal(out[i], want);
	}
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void local_array(void **state)
{
	enum { N = 70 };
	int in[N], out[N];
	struct {
		int *in, *out;
		int n;
	} params = {in, out, N};

	(void)state;
	for (int i = 0; i < N; i++)
		in[i] = (i * 37) % 101;
	fixture_must_run(module, "local_array", DIM(3), DIM(32), 0, &params);
	for (int i = 0; i < N; i++) {
		int sorted[16];
		for (int k = 0; k < 16; k++)
			sorted[k] = in[(i + k) % N];
		qsort(sorted, 16, sizeof(int), compare);
		assert_int_equal(out[i], sorted[in[i] & 15]);
	}
}

static void globals(void **state)
{
	float out[32], *pointer = out;
	unsigned *counter;
	void *address;
	size_t size;

	(void)state;
	fixture_must_run(module, "globals", DIM(2), DIM(32), 0, &pointer);
	assert_true(out[0] == 42);
	for (int i = 1; i < 32; i++)
		assert_true(out[i] == (float)(1 + i % 8));
	assert_true(ptx_module_global(module, "counter", &address, &size));
	counter = address;
	assert_int_equal(size, 4);
	assert_int_equal(*counter, 164);
}

static void halves(void **state)
{
	enum { N = 16 };
	float in[N], out[4 * N];
	struct {
		float *in, *out;
		int n;
	} params = {in, out, N};

	(void)state;
	/* Small integers, which both formats hold exactly, and their squares. */
	for (int i = 0; i < N; i++)
		in[i] = (float)(i - 8);
	fixture_must_run(module, "halves", DIM(1), DIM(32), 0, &params);
	for (int i = 0; i < N; i++) {
		float x = in[i];
		assert_true(out[4 * i] == x * x + x);
		assert_true(out[4 * i + 1] == x * x + x);
		assert_true(out[4 * i + 2] == 4 * x * x + 2 * x);
		assert_true(out[4 * i + 3] == x * x);
	}
}

static void votes(void **state)
{
	enum { N = 64 };
	unsigned out[N][8], *pointer = out[0];

	(void)state;
	fixture_must_run(module, "votes", DIM(1), DIM(N), 0, &pointer);
	for (unsigned i = 0; i < N; i++) {
		unsigned lane = i % 32;
		unsigned shuffled = lane < 8       ? ((lane + 1) % 8) * ((lane + 1) % 8)
				    : lane % 8 < 2 ? lane
						   : lane - 2;
		assert_int_equal(out[i][0], 0x49249249);
		assert_int_equal(out[i][1], 3);
		assert_int_equal(out[i][2], 0xfu << (lane / 4 * 4));
		assert_int_equal(out[i][3], shuffled);
		assert_int_equal(out[i][4], ~0u);
		assert_int_equal(out[i][5], 32);
		assert_int_equal(out[i][6], 3);
		assert_int_equal(out[i][7], 496);
	}
}

static void locked(void **state)
{
	int lock = 0, value = 0;
	struct {
		int *lock, *value;
	} params = {&lock, &value};

	(void)state;
	fixture_must_run(module, "locked", DIM(3), DIM(64), 0, &params);
	assert_int_equal(value, 192);
	assert_int_equal(lock, 0);
}

static void early_exit(void **state)
{
	int out[128];
	struct {
		int *out;
		int n;
	} params = {out, 70};

	(void)state;
	fixture_must_run(module, "early_exit", DIM(1), DIM(128), 0, &params);
	for (int i = 0; i < 70; i++)
		assert_int_equal(out[i], 70 * 69 / 2);
}

static void wide(void **state)
{
	int64_t out[9];
	uint64_t a = 0x123456789abcdef0, b = 0xfedcba9876543210;
	struct {
		int64_t *out;
		uint64_t a, b;
	} params = {out, a, b};
	unsigned __int128 product = (unsigned __int128)a * b;

	(void)state;
	fixture_must_run(module, "wide", DIM(1), DIM(1), 0, &params);
	assert_int_equal(out[0], (int64_t)product);
	assert_int_equal(out[1], (int64_t)(product >> 64));
	assert_int_equal(out[2], (int64_t)(a / (b >> 20)));
	assert_int_equal(out[3], (int64_t)(a % (b >> 20)));
	assert_int_equal(out[4], (int64_t)a / -7);
	assert_int_equal(out[5], 0x0f7b3d591e6a2c48);
	assert_int_equal(out[6], (int64_t)(((__int128)(int64_t)a * (int64_t)b) >> 64));
	assert_int_equal(out[7], (int64_t)(float)(int64_t)a);
	assert_int_equal(out[8], INT64_MAX); /* too large: the largest */
}

static void groups(void **state)
{
	enum { N = 96 };
	int in[N], out[N];
	struct {
		int *in, *out;
	} params = {in, out};

	(void)state;
	for (int i = 0; i < N; i++)
		in[i] = (i * 29) % 17;
	fixture_must_run(module, "groups", DIM(1), DIM(N), 0, &params);
	for (int i = 0; i < N; i++) {
		int want = 0, size = 0, rank = 0, last = 0;
		for (int k = i / 8 * 8; k < i / 8 * 8 + 8; k++)
			want += in[k];
		for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++) {
			if (in[k] % 3)
				continue;
			rank += k < i;
			size++;
			last = in[k];
		}
		assert_int_equal(out[i],
				 want + (in[i] % 3 ? 0 : 10000 * size + 1000000 * rank + last));
	}
}

static void says(void **state)
{
	char line[128] = "";
	int n = 13;
	struct ptx_error error;

	(void)state;
	/* To a file, as stdout is the test's report. */
	FILE *file = tmpfile();
	fflush(stdout);
	int saved = dup(1);
	assert_true(file && saved >= 0 && dup2(fileno(file), 1) == 1);
	int r = fixture_run(module, "says", DIM(1), DIM(1), 0, &n, &error);
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	rewind(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	assert_string_equal(line, "thread 0 of simcuda:  3.25 x%\n");
	assert_int_equal(r, -EFAULT);
	assert_non_null(strstr(error.message, "assertion failed: n != 13"));
}

int main(void)
{
	int failed = 0;

	for (size_t k = 0; k < sizeof(targets) / sizeof(targets[0]); k++) {
		const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, load, unload, (void *)targets[k])
			TEST(matmul),      TEST(reduce),     TEST(histogram), TEST(single_math),
			TEST(double_math), TEST(choose),     TEST(calls),     TEST(recursion),
			TEST(local_array), TEST(globals),    TEST(halves),    TEST(votes),
			TEST(locked),      TEST(early_exit), TEST(wide),      TEST(groups),
			TEST(says),
#undef TEST
		};
		failed += cmocka_run_group_tests_name(targets[k], tests, NULL, NULL);
	}
	return failed;
}
