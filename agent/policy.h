/* Policies: who waits among those that the demand words leave equal.
 *
 * A policy is a file with one `const struct policy`. It is pure: it sees clients come, go and
 * change, gets the time as a number, and its only deed is to set or clear hold words through the
 * view it is given. So it runs the same on the real clock and on a test's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_NEVER UINT64_MAX

/* What a policy sees of a client; embedded in the client. */
struct policy_client {
	uint8_t level;
	uint64_t outstanding; /* as its status page says; may be a lie */
	uint64_t remaining;   /* ns, as it says */
	bool held;
};

/* The world of one GPU. */
struct policy_view {
	void (*hold)(struct policy_view *view, struct policy_client *client, bool held);
};

struct policy {
	const char *name;
	bool holds;        /* uses hold words: gates must wait for them, too */
	size_t state_size; /* of @state below, zeroed at the start; one for each GPU */
	/* Each may be NULL. */
	void (*added)(void *state, struct policy_view *view, struct policy_client *client,
		      uint64_t now);
	void (*removed)(void *state, struct policy_view *view, struct policy_client *client,
			uint64_t now);
	void (*changed)(void *state, struct policy_view *view, struct policy_client *client,
			uint64_t now);
	/* The time of the next tick, or POLICY_NEVER. */
	uint64_t (*tick)(void *state, struct policy_view *view, uint64_t now);
};

extern const struct policy policy_hpf;

/* NULL: no policy of that name. */
const struct policy *policy_find(const char *name);
/* All names, for messages. */
const char *policy_names(void);
