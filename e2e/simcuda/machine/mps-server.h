/* The server that the stand-in for NVIDIA's MPS daemon starts. */
#pragma once

/* Makes the compute channel groups of the clients of the pipe directory @pipes. Writes a byte to
 * @news when it is ready, and one for each fault. Never returns. */
_Noreturn void mps_server_run(const char *pipes, int news);
