/* Commands of the control socket: JSON in, JSON out.
 *
 *   {"command": "health"}                           -> {"health": "ok"}: the agent's loop runs
 *   {"command": "status"}                           -> {"version", "policy", "gpus", "clients",
 *                                                      "pods": those with problems,
 *                                                      "configMistake": if there is one}
 *   {"command": "policy"}                           -> {"policy", "policies"}
 *   {"command": "policy", "name": NAME}             sets the policy; the same answer
 *   {"command": "hold", "client": N, "seconds": S}  -> {"client", "heldSeconds"}; 0 ends the hold
 *   {"command": "bound", "client": N, "workers": W} -> {"client", "workers"}; 0 ends the bound
 *   {"command": "trace", "seconds": S, "gpu": ID}   -> {"gpu", "trace"} after that time
 *   {"command": "explain", "pod": [NAMESPACE/]NAME} -> {"text"}: why it is pending, refused, low or
 *                                                      slow; {"fetching": true}: ask again soon
 *   {"command": "profiles", ...}, {"command": "import-profile", ...},
 *   {"command": "forget-profiles", ...}          see profile/profile-command.h
 *   {"command": "coexec-sets"}, {"command": "import-coexec-set", ...},
 *   {"command": "forget-coexec-sets"}            see profile/coexec-command.h
 *   anything else                                   -> {"error"}
 *
 * "gpu" may be left out if the node has only one. */
#pragma once

#include "daemon/decider.h"
#include "daemon/monitor.h"
#include "reports/pod-report.h"
#include "mps/mps.h"

#define COMMANDS_HOLD_MAX  3600 /* s */
#define COMMANDS_TRACE_MAX 3600 /* s */

struct profile_service;
struct reload;
struct report;

struct commands {
	struct decider *decider;
	const struct monitor *monitor;
	const struct pod_report *problems;
	const struct reload *reload;
	const struct mps *mps;
	struct report *report;
	struct profile_service *profiles;
};

/* The caller frees the answer. NULL: no memory; or, if *@later is not 0, commands_trace() gives the
 * answer after that many ns. */
char *commands_answer(const struct commands *commands, const char *request, size_t size,
		      uint64_t *later);
/* Ends the recording. */
char *commands_trace(const struct commands *commands);
