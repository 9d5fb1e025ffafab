/* Whether a GPU can be handed out. Pure, on the caller's clock (ns); for the device plugin, which
 * tells the kubelet, and for the agent, which tells people.
 *
 * A GPU becomes unhealthy, and healthy again, so:
 *
 *   NVML gets no answer from it          as soon as it answers
 *   NVML has lost it                     as soon as it answers: that takes a reset
 *   an XID error that means REST         the recovery time after the last one
 *   uncorrected memory errors were new   the recovery time after the last one
 *   an XID error that means RESET        when a reset was seen, and not before the recovery time
 *   the driver asks for a recovery       when it no longer does
 *   memory rows could not be remapped    never: NVIDIA takes such a GPU back
 *
 * A driver that tells which recovery it wants (R570 and younger) knows better than a table of XID
 * errors: there RESET is the same as REST, and the recovery action decides. Elsewhere a reset was
 * seen when the GPU was lost and answers again, when its count of memory errors went back, or when
 * whoever watches was started anew, for nobody can reset a GPU while somebody has it open.
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
	uint32_t ignored_xids[HEALTH_XIDS_MAX]; /* beside those that are harmless anyway */
	size_t n_ignored_xids;
	uint32_t recovery; /* seconds without a new error */
	bool ecc;          /* whether errors of memory count */
};

extern const struct health_settings health_defaults;
/* For a yaml_field of yaml_read_section whose target is a struct health_settings. */
extern const struct yaml_field health_fields[];

enum health_answer { HEALTH_ANSWERS, HEALTH_SILENT, HEALTH_LOST };

struct health {
	enum health_answer answer; /* when it was last asked */
	uint64_t sick_end;         /* of the recovery time; 0: no error yet */
	uint64_t xid;              /* the error that began it; 0: errors of memory */
	bool reset_wanted;         /* by an XID error */
	bool action_known;         /* the driver says whether it wants a recovery */
	unsigned action;           /* nvmlDeviceGpuRecoveryAction_t; 0: it wants none */
	bool defect;               /* memory rows could not be remapped */
	bool errors_known;
	uint64_t errors; /* uncorrected ones of memory since the driver was loaded */
};

/* An XID error at @now. False: it says nothing about the GPU, or is ignored. */
bool health_xid(struct health *health, const struct health_settings *settings, uint64_t xid,
		uint64_t now);
/* The GPU was asked something. */
void health_asked(struct health *health, enum health_answer answer);
/* What it tells about its memory and its driver; only where it does. */
void health_errors(struct health *health, const struct health_settings *settings, uint64_t errors,
		   uint64_t now);
void health_remap(struct health *health, const struct health_settings *settings, bool failed);
void health_action(struct health *health, unsigned action);

bool health_good(const struct health *health, uint64_t now);
/* Why it is not, in a few words; "good" if it is. */
void health_reason(const struct health *health, uint64_t now, char out[HEALTH_REASON_MAX]);
