/* The server that the stand-in for NVIDIA's MPS daemon starts. */
#pragma once

/* Makes the compute channel groups of the clients of the pipe directory @pipes. Writes a byte to
 * @news when it is ready, and one for each fault. Ends the work of the clients whose pids
 * (uint32_t) come from @orders. Never returns. */
_Noreturn void mps_server_run(const char *pipes, int news, int orders);
