/* An agent that the test plays. */
#pragma once

#include "weir/protocol.h"

#include <stdbool.h>
#include <unistd.h>

struct fake_agent {
	char socket_path[64];
	int listener;
	int client; /* the accepted connection */
	struct weir_hello hello;
	int demand_fds[WEIR_DEMAND_LEVELS];
	struct weir_demand_page *demand[WEIR_DEMAND_LEVELS];
	struct weir_demand_page *former[WEIR_DEMAND_LEVELS]; /* before the last new pages */
	int control_fd, status_fd;
	struct weir_control_page *control;
	struct weir_status_page *status;
};

/* Listens, and sets WEIR_SOCKET. */
void fake_agent_init(struct fake_agent *agent);
void fake_agent_deinit(struct fake_agent *agent);

/* Listens again on the same path after fake_agent_stop(). The pages stay. */
void fake_agent_start(struct fake_agent *agent);
void fake_agent_stop(struct fake_agent *agent);
/* Another agent from now on: the client's own pages are new, the demand pages stay. */
void fake_agent_renew(struct fake_agent *agent);

/* Accepts a connection and takes its HELLO. Fails the test when none comes within 5 s. */
void fake_agent_accept(struct fake_agent *agent);
/* The same on a thread, and answers with welcome; fake_agent_join() waits for it. */
void fake_agent_welcome_next(struct fake_agent *agent, uint8_t level, uint8_t bit);
void fake_agent_join(void);

void fake_agent_welcome(struct fake_agent *agent, uint8_t level, uint8_t bit);
void fake_agent_level(struct fake_agent *agent, uint8_t level);
/* The same with a bit that the client gets. */
void fake_agent_raise(struct fake_agent *agent, uint8_t level, uint8_t bit);
/* New demand pages with the former's words, as when a client has lost its level. */
void fake_agent_new_demand(struct fake_agent *agent);

/* The next COMPILE. Fails the test when none comes within 5 s. */
struct fake_request {
	uint32_t id;
	struct weir_compile_file *file; /* for free() */
	const char *name, *image;
};
void fake_agent_asked(struct fake_agent *agent, struct fake_request *request);
/* True: nothing is there to be read. */
bool fake_agent_quiet(struct fake_agent *agent);
/* @size 0: no descriptor. */
void fake_agent_compiled(struct fake_agent *agent, uint32_t id, uint32_t status, const void *object,
			 size_t size);

/* What the agent knows of the kernel of request @id, as one PROFILE. Its digest is all @digest. */
void fake_agent_profile(struct fake_agent *agent, uint32_t id, uint8_t digest,
			const struct weir_profile *entries, uint32_t n);
/* The next LEARNED. Fails the test when none comes in time. */
struct weir_learned fake_agent_learned(struct fake_agent *agent);

/* Only a failing test waits this long, or one on a busy machine. */
#define EVENTUALLY_MS 30000

/* Waits until the condition holds. False: it did not in time. */
#define eventually(condition)                       \
	({                                          \
		int left_ = EVENTUALLY_MS;          \
		while (!(condition) && left_-- > 0) \
			usleep(1000);               \
		(condition);                        \
	})
