/* Sets of variants that bench-kernels compares. */
#pragma once

#include "form-launcher.h"

#define AHEAD .ahead = true
#define APART .order = WEIR_TICKETS_APART
static const struct variant usual[] = {
	{WEIR_NATIVE, 1},
	{WEIR_PERSISTENT, 1, .even = true},
	{WEIR_PERSISTENT, 1, AHEAD, .even = true},
	{WEIR_PERSISTENT, 2, AHEAD},
	{WEIR_PERSISTENT, 4, AHEAD},
	{WEIR_PERSISTENT, 8, AHEAD},
	{WEIR_PERSISTENT, 16, AHEAD},
	{WEIR_PERSISTENT, 32, AHEAD},
	{WEIR_PERSISTENT, 2, AHEAD, APART},
	{WEIR_PERSISTENT, 4, AHEAD, APART},
	{WEIR_PERSISTENT, 8, AHEAD, APART},
	{WEIR_PERSISTENT, 16, AHEAD, APART},
	{WEIR_PERSISTENT, 1, .even = true, .spare = true},
	{WEIR_PERSISTENT, 2, AHEAD, .spare = true},
	{WEIR_PERSISTENT, 4, AHEAD, .spare = true},
	{WEIR_PERSISTENT, 8, AHEAD, .spare = true},
	{WEIR_PERSISTENT, 16, AHEAD, .spare = true},
	{WEIR_RESUMABLE, 1, .even = true},
	{WEIR_RESUMABLE, 4},
	{WEIR_RESUMABLE, 16},
	{WEIR_SLICED, 2},
	{WEIR_SLICED, 3},
	{WEIR_SLICED, 4},
	{WEIR_SLICED, 6},
	{WEIR_SLICED, 8},
	{WEIR_SLICED, 12},
	{WEIR_SLICED, 16},
};
/* Draining only, saving only, and both; saving again, which shows how far figures differ by chance;
 * draining only with the code that may save; and saving only as 0.1.0's resumable kernels looked.
 */
static const struct variant leaving[] = {
	{WEIR_NATIVE, 1},
	{WEIR_PERSISTENT, 1, .even = true},
	{WEIR_PERSISTENT, 4, AHEAD},
	{WEIR_PERSISTENT, 16, AHEAD},
	{WEIR_RESUMABLE, 1, .even = true, .saves = true},
	{WEIR_RESUMABLE, 1, .even = true},
	{WEIR_RESUMABLE, 4},
	{WEIR_RESUMABLE, 16},
	{WEIR_RESUMABLE, 1, .even = true, .saves = true},
	{WEIR_RESUMABLE, 1, .even = true, .finishes = true},
	{WEIR_RESUMABLE, 1, .even = true, .saves = true, .together = true},
};
/* The same tickets without groups and with them, while nobody asks; then these leave a part of the
 * SMs. */
static const struct variant grouped[] = {
	{WEIR_NATIVE, 1},
	{WEIR_PERSISTENT, 1, .even = true},
	{WEIR_PERSISTENT, 1, .even = true, .groups = true},
	{WEIR_PERSISTENT, 4, AHEAD},
	{WEIR_PERSISTENT, 4, AHEAD, .groups = true},
	{WEIR_PERSISTENT, 16, AHEAD},
	{WEIR_PERSISTENT, 16, AHEAD, .groups = true},
};
