/* What the control socket answers: JSON in, JSON out.
 *
 *   {"command": "status"}                               ->  {"version", "policy", "gpus",
 * "clients"}
 *   {"command": "policy"}                               ->  {"policy", "policies"}
 *   {"command": "policy", "name": NAME}                     the same, and it is in force
 *   {"command": "hold", "client": N, "seconds": S}      ->  {"client", "heldSeconds"}; 0: no more
 *   {"command": "trace", "seconds": S, "gpu": ID}       ->  {"gpu", "trace"} after that time; "gpu"
 * may be left out where there is only one anything else                                       ->
 * {"error"} */
#pragma once

#include "daemon/agent.h"

#define COMMANDS_HOLD_MAX  3600 /* s */
#define COMMANDS_TRACE_MAX 3600 /* s */

/* The answer, the caller's; NULL: no memory, or @later is not 0: the answer is commands_trace()'s,
 * so many ns from now. */
char *commands_answer(struct agent *agent, const char *request, size_t size, uint64_t *later);
char *commands_trace(struct agent *agent);
