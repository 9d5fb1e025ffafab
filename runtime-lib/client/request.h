/* A client's requests to the agent's compile service: a few at a time, each in a slot. The worker
 * fills a slot and takes the answer out of it; the link thread sends and receives. The state of a
 * slot says which of the two threads owns it.
 *
 * A request outlives the connection: it is sent again to the next agent. */
#pragma once

#include "client/client.h"

#include "weir/protocol.h"

#define REQUESTS_MAX 4

/* What the agent knows of a kernel. */
struct kernel_profiles {
	uint8_t kernel[32]; /* its digest */
	uint32_t n;
	struct weir_profile entries[WEIR_PROFILE_KERNEL];
};

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
	struct kernel_profiles *profiles; /* for free(); NULL: the agent keeps none */

	/* Link thread. */
	uint64_t due; /* ns: queued: send it then; sent: give up then */
	unsigned lost,
		busy; /* agents that died while it was sent; how often the service was busy */
};

/* Worker: is there a free slot; is there an answer? */
bool request_room(const struct client *client);
struct request *request_answered(struct client *client);

/* Worker: asks for a kernel. Takes @file in any case. Returns the request's number, 0: no room. */
uint32_t request_put(struct client *client, int file);

/* Worker: the answer was seen. */
void request_done(struct request *request);

/* Link thread: sends what is due on @socket. Returns when to call again, in ns; UINT64_MAX: never.
 */
uint64_t request_send(struct client *client, int socket, uint64_t now);

/* Link thread: an answer came. Takes @file (-1: none) in any case. */
void request_answer(struct client *client, const struct weir_compiled *answer, int file,
		    uint64_t now);

/* Link thread: what the agent knows of the kernel came, before the answer. */
void request_profiles(struct client *client, const struct weir_profile_message *message);

/* Link thread: the agent has gone. The next one is asked again. */
void request_lost(struct client *client);

/* While neither thread uses the client: drops all requests. */
void request_reset(struct client *client);

/* For tests. */
struct request *request_at(const struct client *client, size_t index);
