/* Where the agent listens. */
#pragma once

/* Our descriptors are above this, out of the way of applications that close or count theirs. */
#define CONNECT_FD_FROM 512

/* The path of the agent's socket. */
const char *connect_path(void);
/* A new connection to the agent, or a negative errno. */
int connect_agent(void);
