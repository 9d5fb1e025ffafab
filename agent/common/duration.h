/* Durations as people write them: 250us, 1.5ms, 2s. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DURATION_MAX (366ull * 24 * 3600 * 1000000000)

/* A number with a unit behind it: ns, us, ms, s, m, h; no sign, no blank, at most DURATION_MAX. In
 * nanoseconds, fractions of them cut off. False: it is something else. */
bool duration_parse(const char *text, uint64_t *out);
