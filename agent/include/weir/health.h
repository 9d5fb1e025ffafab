/* Decides whether a GPU is healthy. Pure, on the caller's clock (ns). The device plugin reports the
 * result to the kubelet, the agent reports it to people.
 *
 * What makes a GPU unhealthy, and when it is healthy again:
 *
 *   NVML gets no answer from it          as soon as it answers
 *   NVML has lost it                     as soon as it answers; that takes a reset
 *   an XID error that means REST         the recovery time after the last one
 *   new uncorrected memory errors        the recovery time after the last one
 *   an XID error that means RESET        after a reset, and after the recovery time
 *   the driver asks for a recovery       when the driver stops asking
 *   memory rows could not be remapped    never: such a GPU must be replaced
 *
 * A driver since R570 says which recovery it wants. This is more precise than our table of XID
 * errors: RESET then counts as REST, and the driver's recovery action decides. With older drivers a
 * reset is assumed when a lost GPU answers again, when its count of memory errors falls, or when
 * this program starts (nobody can reset a GPU that a program has open).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/xid.h"
#include "weir/yaml.h"

#define HEALTH_XIDS_MAX   64u
#define HEALTH_REASON_MAX 128u

struct health_settings {
	uint32_t ignored_xids[HEALTH_XIDS_MAX]; /* in addition to the harmless ones */
	size_t n_ignored_xids;
	uint32_t recovery; /* seconds */
	bool ecc;          /* whether memory errors count */
};

extern const struct health_settings health_defaults;
/* For a yaml_field of yaml_read_section whose target is a struct health_settings. */
extern const struct yaml_field health_fields[];

enum health_answer { HEALTH_ANSWERS, HEALTH_SILENT, HEALTH_LOST };

struct health {
	enum health_answer answer; /* to the last question */
	uint64_t sick_end;         /* end of the recovery time; 0: no error so far */
	uint64_t xid;              /* the error that started it; 0: memory errors */
	bool reset_wanted;         /* because of an XID error */
	bool action_known;         /* the driver reports recovery actions */
	unsigned action;           /* nvmlDeviceGpuRecoveryAction_t; 0: none */
	bool defect;               /* memory rows could not be remapped */
	bool errors_known;
	uint64_t errors; /* uncorrected memory errors since the driver was loaded */
};

/* Counts an XID error. False: harmless or ignored. */
bool health_xid(struct health *health, const struct health_settings *settings, uint64_t xid,
		uint64_t now);
/* Records whether the GPU answered. */
void health_asked(struct health *health, enum health_answer answer);
/* Records what NVML reports, where it does. */
void health_errors(struct health *health, const struct health_settings *settings, uint64_t errors,
		   uint64_t now);
void health_remap(struct health *health, const struct health_settings *settings, bool failed);
void health_action(struct health *health, unsigned action);

bool health_good(const struct health *health, uint64_t now);
/* Writes why the GPU is unhealthy, or "good". */
void health_reason(const struct health *health, uint64_t now, char out[HEALTH_REASON_MAX]);
