/* The link to the agent: a connection for each client, and one thread for all of them. It takes the
 * agent's messages, notices when an agent dies, and connects again. It never calls the driver: when
 * the agent dies a client must be able to open its gates even while all driver calls are stuck
 * behind a closed gate. */
#pragma once

#include "client/level-binding.h"

/* Starts the thread, if there is none. By one thread at a time. 0 or an errno. */
int link_start(void);

/* A new client: not connected. */
void link_init(struct client *client);
/* Connects it and waits a moment for the answer, which goes to the mailbox (level-binding.h). If
 * there is no agent the link thread goes on trying. */
void link_open(struct client *client);
/* Ends the connection: the agent forgets the client. */
void link_close(struct client *client);

/* Any thread: there is something to send. */
void link_wake(void);

/* Any thread, the launch path too: tells the agent at once that there is work now. */
void link_tell_work(struct client *client, uint64_t now);

/* The link thread's part: takes one message from the client's socket, or notices that the agent is
 * gone. */
void link_receive(struct client *client, uint64_t now);

/* In a forked child: there is no link thread. */
void link_fork(void);

/* For tests. */
struct link {
	int socket; /* -1: not connected */
	/* The same socket for link_tell_work(), under a number that never changes; 0: none yet. */
	_Atomic int work_socket;
	_Atomic uint64_t told; /* ns, when it was last used */
	uint64_t retry_at, retry_delay;
	/* A copy of the newest binding that was handed over, settled or not: a LEVEL message is
	 * about it. Without pages: there was none. */
	struct level_binding newest;
	bool welcome;          /* by the agent that the socket leads to */
	uint32_t groups_told;  /* channel_groups_changes() then */
	uint64_t let_go_until; /* the stop that the client has ended itself; 0: none */
};
PER_CLIENT(link)
