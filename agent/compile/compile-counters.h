/* What the compile service counts for its metrics. */
#pragma once

#include <stdint.h>

#include "compile/helper.h"

#include "weir/object.h"
#include "weir/protocol.h"
#include "weir/transform.h"

#define COMPILE_REASONS_MAX 48 /* with a counter of their own */
#define COMPILE_REASON_SIZE 96

enum compile_bucket { COMPILE_BUCKETS = 8 };
extern const double compile_buckets[COMPILE_BUCKETS]; /* seconds */

struct compile_reason {
	enum weir_form form;
	char text[COMPILE_REASON_SIZE];
	uint64_t n;
};

struct compile_counters {
	uint64_t answers[WEIR_COMPILE_OFF + 1];
	uint64_t hits, misses, known_failures, damaged, unkept;
	uint64_t outcomes[HELPER_OUTCOMES];
	uint64_t nanoseconds, buckets[COMPILE_BUCKETS];
	/* Forms refused in finished objects. Reasons beyond the table count in other_reasons. */
	struct compile_reason reasons[COMPILE_REASONS_MAX];
	unsigned n_reasons;
	uint64_t other_reasons;
};

/* Makes a program's text fit for the log and for labels. */
void compile_clean(char *text);
/* The forms that the valid @object has not. */
void compile_count_refusals(struct compile_counters *counters, const struct weir_object *object);
void compile_count_time(struct compile_counters *counters, uint64_t nanoseconds);
