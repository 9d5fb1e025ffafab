/* How soon a launch leaves a part of the SMs, and comes back to them, as a host sees it.
 *
 * A kernel of one thread looks at the launch's words about once per microsecond and tells the host.
 * The launch has one worker less than fit on the GPU: that kernel has its place. It has left when
 * as many are gone as fit on these SMs, but for one. It is back when its continuation has drawn as
 * many tickets as it has workers. */
#pragma once

#include <stdbool.h>

#include <weir/preempt-abi.h>

#include "workload.h"

/* What a launch polls, in one sector, as in libweir's pages. */
struct form_page {
	uint64_t any; /* SMs are to be left */
	uint64_t demand;
	uint32_t sms;
};

struct group_times {
	double leave_us, return_us; /* 0: not seen: the launch ended before, or see unseen_ns */
	/* Each worker still ran its first ticket, or none, when the SMs were asked for. */
	bool first;
	/* For --each, in us. Before the host asked: the time from the launch to the first draw, and
	 * the longest time without a draw after that; afterwards, the times until a worker knew and
	 * until the first one was gone. 0: not seen. */
	double drew_us, still_us, knew_us, gone_us;
	uint32_t draws; /* when the host asked */
};

struct group_watch {
	CUmodule module;
	CUfunction function;
	CUstream stream;
	struct group_seen *seen; /* in the host's memory */
	CUdeviceptr seen_address;
	/* A time in which the host did not look for so long does not count: now and then a virtual
	 * machine's processor is away. */
	uint64_t unseen_ns;
};

void group_watch_init(struct group_watch *watch);
void group_watch_deinit(struct group_watch *watch);

/* Watches @words from now on, until group_watch_end(). */
void group_watch_begin(struct group_watch *watch, CUdeviceptr words);
void group_watch_end(struct group_watch *watch);

/* The launch of @workers has begun: @page is what it polls; it leaves @left SMs of @of
 * after @wait ns. Returns when it is back, or has ended. */
struct group_times group_leave_and_return(struct group_watch *watch, struct form_page *page,
					  uint32_t left, uint32_t of, uint32_t workers,
					  uint64_t wait, CUstream stream);
/* One line on stderr. */
void group_times_tell(const struct group_times *times, const char *kernel, uint64_t wait);
