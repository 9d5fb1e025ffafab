/* Amounts as people write them: a number, perhaps with a fraction, and a unit. No sign, no blank.
 * Fractions of the smallest unit are cut off. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DURATION_MAX (366ull * 24 * 3600 * 1000000000)

/* A whole number from @min to @max. False: anything else. */
bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* 250us, 1.5ms, 2s: in ns, from @min to @max, which is at most DURATION_MAX. False: anything else.
 */
bool duration_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ns);

#define MEMORY_EXPECTED "an amount of memory from 2Mi to 1Pi, like 8Gi"

/* 8Gi, 512Mi, 1.5G, 1000000000, as Kubernetes writes them: in bytes. False: not MEMORY_EXPECTED. */
bool memory_parse(const char *text, uint64_t *bytes);
