/* The link to the agent: a connection for each client, and one thread for all of them that waits
 * for what agents say, notices when they go, and connects again. It never calls the driver: a
 * client must be able to let itself go on when its agent dies, even while all driver calls are
 * stuck behind a closed gate. */
#pragma once

#include "client/client.h"

/* Before a slot is used (again): not connected, nothing to try. */
void link_reset(struct client *client);

/* Connects the client and waits a moment for the answer. The binding is the caller's (free()); its
 * pages belong to the client. NULL: no agent for now; the link thread goes on trying. */
struct level_binding *link_open(struct client *client);

/* Starts the thread, if there is none. By one thread at a time. 0 or an errno. */
int link_start(void);

/* Any thread: there is something to send. */
void link_wake(void);

/* Any thread, the launch path too: the agent wants to know at once that there is work now. */
void link_tell_work(struct client *client, uint64_t now);

/* The link thread's part: takes one message from the client's socket, or notices that the agent is
 * gone. */
void link_receive(struct client *client, uint64_t now);

/* Ends the connection: the agent forgets the client. */
void link_close(struct client *client);

/* In a forked child: there is no link thread. */
void link_forget(void);
