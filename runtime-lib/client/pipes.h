/* Which MPS server this process joins, where a GPU has one for each level: the agent says it, and
 * libcuda finds the server by CUDA_MPS_PIPE_DIRECTORY (weir/protocol.h, WEIR_PIPES). */
#pragma once

/* Before the process's first call of the driver. Asks the agent once, if the node has such a GPU,
 * and sets the variable, unless the program has set it. Waits for at most 1 s for a sign of the
 * agent, and then for WEIR_PIPES_WAIT_MS for a server that it starts. Without an answer the process
 * is time-sliced. */
void pipes_join(void);

/* The server to which the next connection goes. Takes @fd. */
void pipes_take(int fd);

/* In a forked child, which asks for itself. */
void pipes_fork(void);
