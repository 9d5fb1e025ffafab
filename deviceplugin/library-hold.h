/* Keeps the files that containers mount from the node open for reading: libweir.so, libweir-nvml.so
 * and ld.so.preload of each version. Root in a container can take a write lease (fcntl(2)) on such
 * a file, and every open of it in other containers, so every exec, then waits for 45 s. The kernel
 * refuses the lease while another process has the file open.
 */
#pragma once

#include "config.h"

/* Opens the files once for the life of the process: new versions come with a new plugin. Waits for
 * nobody: if a file is already leased, a thread of its own waits until the kernel ends the lease,
 * and keeps the file from then on. Logs what is missing. */
void library_hold(const struct config *config);
