/* What a client without weir.dev/yield asks lower levels for (WEIR_YIELD_AUTO): the whole GPU, or
 * less where its work is about as fast with that, which it finds out beside each company that works
 * below (need-probe.h). What counts is how long its work takes from idle to idle, divided by the
 * number of its launches: graphs, closed kernels and waits count as they are, and no launch is
 * measured for it. Nothing is known of work that never ends, and that keeps the whole GPU.
 *
 * What was found is taught to the agent (weir_profile.yields): the next process of the program
 * begins with it. Where it differs from company to company, that is what needs most. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"
#include "gates/need-probe.h"

#include "weir/protocol.h"

#define NEED_COMPANIES 4u  /* the one that was seen last takes the place of the oldest */
#define NEED_PERIODS   64u /* between two looks of the worker; later ones overwrite them */

struct need_company {
	uint32_t number; /* weir_control_page.company; 0: free */
	uint64_t seen;   /* ns, lately */
	struct need_probe probe;
};

struct need_auto {
	_Atomic int less;  /* than the whole GPU: 1 + the way for which launches ask; 0: all */
	_Atomic int asked; /* the same, of launches since work began */
	_Atomic int able;  /* a launch since the worker's last look may do with less */
	_Atomic int met;   /* some lower level has had work */
	/* Work that has ended: ns, launches, way; 0: none. */
	_Atomic uint64_t periods[NEED_PERIODS];
	_Atomic uint32_t ended; /* periods, so far */

	/* Worker. */
	uint32_t read; /* of these */
	struct need_company companies[NEED_COMPANIES];
	struct need_company *now; /* NULL: there was none */
	struct need_budget budget;
	enum weir_profile_yields taught;
};
PER_CLIENT(need_auto)

static inline bool need_is_auto(const struct level_binding *binding)
{
	return load_relaxed(&control_page(binding)->yield) == WEIR_YIELD_AUTO;
}

/* Launch path, off the usual way: the way for a launch that may do with less than all. */
enum need_way need_auto_way(struct client *client);
/* Any thread: work of so many launches took @ns, and is done. @whole: something of it asked for the
 * whole GPU. */
void need_auto_ended(struct client *client, bool whole, uint64_t launches, uint64_t ns);

/* Columns of the table. */
void need_auto_work(struct client *client, struct tick *tick);
