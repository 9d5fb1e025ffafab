/* What a client asks the agent's compile service: a few requests at a time, each in a slot. The
 * worker fills a slot and takes the answer out of it, the link thread sends and receives; a slot
 * belongs to one of them at any time, by its state.
 *
 * A request outlives the connection: it is sent again to the next agent. */
#pragma once

#include "weir/protocol.h"

#include <stdbool.h>

#define REQUESTS_MAX 4

struct client;

enum request_state {
	REQUEST_FREE,     /* the worker's */
	REQUEST_QUEUED,   /* the link thread's */
	REQUEST_SENT,     /* the link thread's */
	REQUEST_ANSWERED, /* the worker's */
};

struct request {
	_Atomic int state; /* enum request_state */
	uint32_t id;       /* of this client, never twice */
	int file;          /* what is sent; when answered with OK: the object; else -1 */
	uint32_t status;   /* enum weir_compile_status: OK, REFUSED or FAILED */
	char text[128];    /* of the answer */

	/* Link thread. */
	uint64_t due;        /* ns: to be sent then, if queued; answered by then, if sent */
	unsigned lost, busy; /* agents that went over it; how often the service was busy */
};

/* Worker: is there a free slot; is there an answer? */
bool request_room(const struct client *client);
struct request *request_answered(struct client *client);

/* Worker: asks for a kernel. Takes @file, in any case. The number of the request, or 0: there is no
 * room. */
uint32_t request_put(struct client *client, int file);

/* Worker: the answer was seen. */
void request_done(struct request *request);

/* Link thread: sends what is due; when there is something to do next, in ns (UINT64_MAX: not by
 * itself). */
uint64_t request_send(struct client *client, uint64_t now);

/* Link thread: an answer. Takes @file (-1: none came), in any case. */
void request_answer(struct client *client, const struct weir_compiled *answer, int file,
		    uint64_t now);

/* Link thread: the agent has gone; all is asked again of the next. */
void request_lost(struct client *client);

/* While neither thread uses the client: there are no requests any more. */
void request_reset(struct client *client);
