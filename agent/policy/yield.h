/* What a pod asks lower-level clients to leave to it while it has work: the whole GPU, or the SMs
 * that its launches need, and some per cent more of them. As a number, as in the control page
 * (weir/protocol.h): 0: the whole GPU; else 1 + per cent. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/protocol.h"

#define YIELD_WHOLE    0u
#define YIELD_NEEDED   1u
#define YIELD_EXPECTED "whole, needed, or needed+N% with N from 0 to 100"
#define YIELD_TEXT_MAX 16

/* False: @text is none of these. */
bool yield_parse(const char *text, uint32_t *out);
/* As yield_parse() takes it. Returns @out. */
const char *yield_format(uint32_t yield, char out[YIELD_TEXT_MAX]);
