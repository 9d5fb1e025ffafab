/* A process of a container and its memory account, as libweir has it. */
#pragma once

#include "agent-fixture.h"

/* A process's view of its container's account. */
struct view {
	uint32_t slot;
	int limit_fd, account_fd;
	const struct weir_limit_page *limit;
	struct weir_account_page *account;
};

/* Sends MEMORY on a new connection, which it returns. */
int view_ask(void);
/* Reads the answer, ACCOUNT, and closes the connection. */
struct view view_read(int fd);
/* Of a process with next_identity. */
struct view view_of_next(void);
/* Of a process of the container /test of @uid. */
struct view view_of(uid_t uid);
void view_leave(const struct view *view);

/* Makes @fd's file wait for this process: fcntl(2), F_SETLEASE. */
int lease(int fd, int type);

/* The mark of a node with limits. */
bool is_marked(void);
void remove_mark(void);
