/* The command of the control socket about kernels that ran at the same time (policy coexec).
 *
 *   {}   -> {"sets": [{"kernels": [NUMBER...], "workers": [N...], "speedUp": X}...]}
 *
 * A kernel's number is 16 hexadecimal digits; "coexec" of `status` has it for the kernels that run
 * now. Workers, in the same order, are blocks on an SM; 0: not bounded. The speed-up is against
 * turns; of one kernel it is the work in a ns when it is alone. */
#pragma once

#include <cjson/cJSON.h>

#include "policy/coexec/memory.h"

#define COEXEC_NUMBER_TEXT 17

void coexec_number_print(uint64_t number, char out[COEXEC_NUMBER_TEXT]);
/* Fills @answer with all sets, which are bounded. */
void coexec_command_list(const struct coexec_memory *memory, cJSON *answer);
