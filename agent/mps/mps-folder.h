/* The folder of an MPS daemon:
 *
 *   pipe/    the daemon's own sockets
 *   client/  the one that containers get: it admits clients
 *   daemon   its process, for the next agent
 *   ready    exists while the daemon answers
 *   log      the daemon's
 *
 * Errors are negative errnos. */
#pragma once

#include <stdbool.h>

/* Makes @folder, which is below that of @gpu in @dir. The next daemon takes over the sockets of one
 * that died. */
int mps_folder_make(const char *dir, const char *gpu, const char *folder);
/* Containers get the socket that admits clients, but not the one by which root can end the daemon.
 */
int mps_folder_show_clients(const char *folder);
void mps_folder_mark_ready(const char *folder, bool ready);
/* The daemon opened its log for appending, so the file can be truncated at any time. */
void mps_folder_trim_log(const char *folder);
