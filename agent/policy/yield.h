/* What a pod asks lower-level clients to leave to it while it has work: the whole GPU, the SMs that
 * its launches need, and some per cent more of them, a number of SMs, or what its clients find out
 * by themselves. As a number, as in the control page (weir/protocol.h). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/protocol.h"

#define YIELD_WHOLE  0u
#define YIELD_NEEDED 1u
#define YIELD_AUTO   WEIR_YIELD_AUTO
#define YIELD_EXPECTED                                                                    \
	"auto, whole, needed, needed+N% with N from 0 to 100, or a number of SMs from 1 " \
	"to 9999"
#define YIELD_TEXT_MAX 16

/* False: @text is none of these. */
bool yield_parse(const char *text, uint32_t *out);
/* libweir compares how much room is best. */
static inline bool yield_is_compared(uint32_t yield)
{
	return yield != YIELD_WHOLE && yield <= WEIR_YIELD_NUMBER;
}

/* SMs that lower levels leave to launches that need @sms. */
uint64_t yield_sms(uint32_t yield, uint64_t sms);
/* Of enum weir_profile_yields; unknown numbers are as not known. */
const char *yield_found_name(uint32_t found);
/* False: no such name. */
bool yield_found_parse(const char *name, uint32_t *out);
/* As yield_parse() takes it. Returns @out. */
const char *yield_format(uint32_t yield, char out[YIELD_TEXT_MAX]);
