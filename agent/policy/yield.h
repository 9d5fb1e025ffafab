/* What a pod asks lower-level clients to leave to it while it has work: the whole GPU, or the SMs
 * that its launches need, and some per cent more of them. As a number, as in the control page
 * (weir/protocol.h): 0: the whole GPU; else 1 + per cent. Or the needed SMs as long as its kernels
 * are measured to be fast enough with them (scheduler/yield-trial.h). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/protocol.h"

#define YIELD_WHOLE    0u
#define YIELD_NEEDED   1u
#define YIELD_MEASURED (YIELD_NEEDED + WEIR_YIELD_MORE_MAX + 1)
#define YIELD_EXPECTED "whole, needed, measured, or needed+N% with N from 0 to 100"
#define YIELD_TEXT_MAX 16

/* False: @text is none of these. */
bool yield_parse(const char *text, uint32_t *out);
/* What it begins with, as the control page has it. */
uint32_t yield_first(uint32_t yield);
/* As yield_parse() takes it. Returns @out. */
const char *yield_format(uint32_t yield, char out[YIELD_TEXT_MAX]);
