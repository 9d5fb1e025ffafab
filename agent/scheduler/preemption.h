/* What the hardware does for the scheduler: slices by level and weight, and stops of clients that
 * are held (hardware/channels.h).
 *
 * A held client may finish what it has begun; then it is stopped. A client disobeys if it clears
 * its hold word, or if it ends the stop by itself: it reports work done while it is stopped, or the
 * driver counts time on the GPU (hardware/process-use.h). It is stopped again at once. One that
 * ends stops is itself stopped by a signal until the hold ends, because it could do so as often as
 * we stop it; in later holds from their beginning.
 *
 * The driver takes a process down only when its channels are, and waits 2 s for stopped ones. So
 * the agent looks whether a stopped process is being killed, and lets its groups go then. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

#define PREEMPTION_HOLD_NS 3000000ull /* for so long a held client may go on */
/* And one that is held by hand: it leaves its turn to nobody, so only kernels that leave by
 * themselves are worth waiting for. A stop takes up to 0.8 ms more. */
#define PREEMPTION_HOLD_BY_HAND_NS 500000ull
/* From the end of a hold to the client's work: it is let go on, the others are stopped, and the GPU
 * switches. The driver's calls wait for each other. With 0.6 ms 1 of 210 requests with an objective
 * of 10 ms began late, with 1 ms 1 of 175 was done late (H100). */
#define PREEMPTION_LAG_NS 1500000ull
/* A stop ends then unless it is renewed (weir_control_page.stopped_until). */
#define PREEMPTION_STOP_NS 1000000000ull
/* Work from before a stop may be reported until so long after it. */
#define PREEMPTION_REPORT_NS 100000000ull
/* After so long in a stop the driver is asked whether the client runs. Turns are shorter, so they
 * cost no such questions, which may make other calls of the driver wait. */
#define PREEMPTION_WATCH_NS 100000000ull
#define PREEMPTION_DEATH_NS 20000000ull /* how often a stopped process is looked at */
#define PREEMPTION_KILL     3u          /* disobediences in one hold that may end the process */

/* The hardware can stop this client. */
static inline bool preemption_works(const struct client *client)
{
	return client->channels.usable && client->gpu->self_test.state == SELF_TEST_WORKS;
}

/* Clients of @gpu have come, gone, or changed. Does nothing before the first one has come. */
void preemption_set_slices(struct gpu *gpu);
/* The MPS server of @level has channel groups that can be used; NULL: it has none any more. */
void preemption_set_server(struct gpu *gpu, uint8_t level, struct channels_client *server);
/* Decides whether the hardware stops @client: it is to be held from now on, or is out
 * (client_is_out()). Call at each look while one of both is so, and when it ends, before the hold
 * word is written. */
void preemption_hold(struct client *client, bool held, uint64_t now);
/* When @client, or its server, is to be stopped because it is held by hand: a look is needed then,
 * however idle the client seems. POLICY_NEVER: never, or it is stopped already. */
uint64_t preemption_due(const struct client *client);
