/* The plans that rows of benchmarks.def name. */
#pragma once

#include "../plan.h"

#define BENCHMARK(name, source, ptx, function, ...) \
	void plan_##function(struct plan *plan, uint32_t size);
#define EATER(name, source, ptx, function, ...)                 \
	void plan_##function(struct plan *plan, uint32_t size); \
	void meanwhile_##function(struct plan *plan);           \
	void judge_##function(struct plan *plan);
#include "benchmarks.def"
#undef BENCHMARK
#undef EATER
