/* A client whose memory the agent limits, on the null driver. The test plays the agent. */
#pragma once

#include "fake-agent.h"

#include "weir/protocol.h"

#include <stdint.h>

#define MIB          (1ull << 20)
#define LIMITED_SLOT 3u /* of the client */

struct limited {
	struct fake_agent agent;
	struct weir_limit_page *limit;
	struct weir_account_page *account;
	int fds[2]; /* of the two pages */
};

extern struct limited limited;

/* A cmocka fixture: an agent whose pages have no limit yet. It has not been asked. */
int limited_init(void **state);
/* Another: the client has asked, and has a limit of 8 MiB. */
int limited_begin(void **state);

/* What the client has charged. */
uint64_t reserved(void);
/* The client's next connection, with its first message. The caller closes it. */
int limited_hear(union weir_message *message);
/* Answers the client's next question with the pages. For a thread. */
void *limited_answer(void *unused);
