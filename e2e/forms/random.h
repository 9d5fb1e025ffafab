/* Random numbers (splitmix64): one state always gives the same ones. */
#pragma once

#include <stdint.h>

uint32_t random_next(uint64_t *state);
/* Less than @n. */
uint32_t random_below(uint64_t *state, uint32_t n);
