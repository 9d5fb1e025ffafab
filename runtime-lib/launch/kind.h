/* What a launch is allowed to become, by the driver's function and its attributes. */
#pragma once

#include "gates/demand-pages.h"

enum launch_kind {
	LAUNCH_PLAIN, /* in any form */
	/* The same, but natively it may overlap the launch before it by programmatic dependence,
	 * unless something comes between these two. */
	LAUNCH_DEPENDENT,
	LAUNCH_NATIVE, /* native, as it has attributes that forms cannot have */
	LAUNCH_WHOLE,  /* native: cooperative */
	LAUNCH_GRAPH,  /* native; its grid says how many blocks it has at the same time (graph.h) */
	LAUNCH_OVERLAP, /* native, and nothing may come between it and the launch before */
	LAUNCH_RECORDS, /* the same; it records a programmatic event */
};

/* Notes a launch that records an event. */
enum launch_kind launch_kind_of(const CUlaunchConfig *config);

/* A kernel behind a programmatic event may wait for it with griddepcontrol.wait, which forms lack.
 * So there are no forms once a launch of the process has recorded one. */
extern _Atomic int launch_events_recorded;

static inline bool launch_may_have_form(enum launch_kind kind, const struct level_binding *binding)
{
	return kind <= LAUNCH_DEPENDENT && binding->wait && !load_relaxed(&launch_events_recorded);
}

/* It begins when the launch before it has ended. */
static inline bool launch_is_apart(enum launch_kind kind)
{
	return kind == LAUNCH_PLAIN || kind == LAUNCH_NATIVE || kind == LAUNCH_WHOLE ||
	       kind == LAUNCH_GRAPH;
}

/* Nobody gains from samples of kernels that overlap and can have no form. */
static inline bool launch_may_be_sampled(enum launch_kind kind, const struct level_binding *binding)
{
	return launch_is_apart(kind) || (kind == LAUNCH_DEPENDENT && binding->wait);
}

static inline enum sms_known launch_sms(enum launch_kind kind, const struct geometry *geometry)
{
	if (kind == LAUNCH_PLAIN || (kind == LAUNCH_GRAPH && geometry->grid[0]))
		return SMS_COUNTED;
	return kind == LAUNCH_DEPENDENT || kind == LAUNCH_NATIVE ? SMS_ANY : SMS_ALL;
}
