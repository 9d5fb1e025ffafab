/* The table of the benchmarks. */
#include "papers.h"

#include <weir/base.h>

#define BENCHMARK(name, source, ptx, ...) extern const char ptx##_ptx[];
#define EATER(name, source, ptx, ...)     BENCHMARK(name, source, ptx)
#include "benchmarks.def"
#undef BENCHMARK
#undef EATER

#define CLASSES(large, small, trivial) \
	{                              \
		large, small, trivial  \
	}
#define COMMON(name_, source_, ptx_, function, unit_, ...)                            \
	.name = name_, .source = source_, .ptx = ptx_##_ptx, .plan = plan_##function, \
	.unit = unit_, .sizes = {__VA_ARGS__}
#define BENCHMARK(...) {COMMON(__VA_ARGS__)},
#define EATER(name, source, ptx, function, ...)                                               \
	{COMMON(name, source, ptx, function, __VA_ARGS__), .meanwhile = meanwhile_##function, \
	 .judge = judge_##function},
const struct benchmark benchmarks[] = {
#include "benchmarks.def"
};

const size_t benchmark_count = countof(benchmarks);
const char *const benchmark_summary = "runs the papers' benchmarks and checks their results";
