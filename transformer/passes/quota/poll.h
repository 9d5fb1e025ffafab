/* What the host asks of a launch, read by the winner of a poll (weir/preempt-abi.h). */
#pragma once

#include "passes/pass.h"

/* Polls if the period is over: if the launch is asked to leave, closes the words and falls through;
 * else goes to @otherwise. @quota: looks for the quota as well, which may close the launch, too. */
void poll_host(struct cursor *at, struct rewrite *rewrite, struct operand words, bool quota,
	       struct operand otherwise);

/* If this thread is the launch's poller (@leader: a predicate, the first thread of its block),
 * polls while tickets are left and draws of them are valid. Then to @draws. */
void poll_alone(struct cursor *at, struct rewrite *rewrite, struct operand leader,
		struct operand draws);
