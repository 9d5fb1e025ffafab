/* Commands of the control socket about kernels that ran at the same time (policy coexec). Each but
 * the first returns NULL, or says what is wrong with @request.
 *
 *   {}             lists them -> {"sets": [{"kernels": [NUMBER...], "workers": [N...],
 *                                           "speedUp": X}...]}
 *   {"set": {...}} imports one, such as the list has -> {}
 *   {}             forgets all -> {"forgotten": N}
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
const char *coexec_command_import(struct coexec_memory *memory, const cJSON *request);
void coexec_command_forget(struct coexec_memory *memory, cJSON *answer);

/* NULL, or what is wrong with @object. Kernels are in its order; @n of them. */
const char *coexec_set_read(const cJSON *object, struct coexec_set *set, unsigned *n);
