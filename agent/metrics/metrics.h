/* Numbers to Prometheus' text format. Pure: reads what the agent's objects say, writes text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/handshake.h"
#include "scheduler/scheduler.h"
#include "scheduler/tenants.h"

struct metrics_input {
	struct tenants *tenants; /* their status pages are read */
	struct gpu *gpus;        /* hash */
	const char *policy;
	struct scheduler_timers timers;
	const uint64_t *refused; /* HANDSHAKE_REFUSALS of them */
	bool kubernetes, connected;
};

/* 0, or a negative errno; then part of the text may be written. */
int metrics_write(FILE *out, const struct metrics_input *input);

/* Pieces of the format, for others' numbers. */
void metrics_head(FILE *out, const char *name, const char *type, const char *help);
void metrics_label(FILE *out, const char *name, const char *value);
void metrics_nanoseconds(FILE *out, uint64_t ns);
