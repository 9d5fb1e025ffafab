/* Launching kernels in forms that can leave (weir/preempt-abi.h). preempt/README.md has the model.
 *
 * A launch in the form persistent or resumable is a chain in the program's own stream:
 *
 *	kernel, gate, continuation, gate, continuation, … gate, last continuation
 *
 * The kernel, and all continuations but the last, leave when a higher level wants the GPU. Then the
 * next gate is closed until it does not, and the continuation behind goes on. The last one is never
 * asked to leave, so the launch is finished when the chain is. Nothing waits for a word that we
 * would have to write, and nobody has to launch anything later: while a stream is blocked, a launch
 * in another stream may be stuck behind it (README.md, traps).
 *
 * How many continuations a launch needs is learned from evictions (autotune). A client whose kernel
 * is finished while gates are closed says so (WEIR_STATUS_DONE), and the agent lets it pass.
 *
 * No launch of a form begins before the launch in front of it is finished, also if the program
 * allows it (weir/preempt-abi.h). A native launch that may overlap the one before begins behind the
 * last continuation, because a form lets no launch begin early.
 *
 * A sliced launch is several launches, each of a part of the grid, with gates between.
 */
#pragma once

#include "launch/preempt-slot.h"
#include "shim/call.h"

/* Continuations of all launches in flight of a stream. The driver queues about 1000 operations
 * (preempt/launch-queue.h), a continuation and its gate are two, and a launch into a full queue
 * blocks in the driver with its lock. In a CUDA graph they take no fewer places: behind a chain, a
 * graph of 256 of each blocked until the kernel was done (H100). A launch gets at most half of what
 * is left (three quarters if its length is not known), but never fewer than the least. */
#define LINKS_MAX   448
#define LINKS_LEAST 4
/* Of a launch in a form. */
#define FORM_ATTRIBUTES_MAX 16u

/* Launch path, with the slot locked: launches as the decision's config says. False: nothing was
 * launched; launch natively. */
bool preempt_launch(struct stream *stream, struct preempt_slot *slot,
		    const struct level_binding *binding, const struct kernel_call *call,
		    const struct launch_decision *decision, struct sample *sample,
		    CUresult *result);

/* Can the kernel @of be launched in a form in this stream? Asks the worker for what is missing. */
bool preempt_is_ready(struct stream *stream, const struct sampled *of);
