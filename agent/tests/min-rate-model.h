/* A container with a minimum rate on a synthetic rate curve. Its reports are late, come in lumps,
 * or lie. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/min-rate.h"

#include "weir/base.h"

#define US     1000ull
#define MS     (1000 * US)
#define SECOND (1000 * MS)

/* A client that always has work or answers requests, and another one that always has work. */
struct model {
	struct min_rate rate;
	/* In thousandths: the client's speed beside the other; the clock; GPU time that libweir
	 * predicts, against what it takes. */
	uint64_t beside, clock, predicted;
	uint64_t launch;       /* ns, at the full clock */
	uint64_t report;       /* ns between two reports */
	uint64_t lag;          /* ns until a decision takes effect */
	uint64_t lies;         /* 0: none; else what it reports, in thousandths */
	bool gone;             /* the other one has no work */
	uint64_t request, gap; /* ns: of work alone; between two requests. 0: it always has work */
	uint64_t busy;         /* ns: its busy periods are taken for no longer */
	uint64_t now, done, other, reported, executed, changes;
	uint64_t asked, answered; /* when the latest request came; 0, or when it was done */
	uint64_t of_request, longest, with_work, counted; /* ns */
	uint64_t host; /* thousandths of the time: work that its processor launches; 0: enough */
	bool runs_alone, was_idle, begins;
};

struct model new_model(uint32_t wanted);
/* @ns go by. */
void run(struct model *model, uint64_t ns);
/* Over @ns: thousandths of its speed alone, at the clock of the time. */
uint64_t had(struct model *model, uint64_t ns);
/* The other one: in thousandths of the time. */
uint64_t left(struct model *model, uint64_t ns);
