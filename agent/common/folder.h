/* A folder of the agent. Clients get descriptors of its files. */
#pragma once

#include <dirent.h>

struct folder {
	int dir;
	int readonly; /* a read-only clone of its mount; -1: not permitted here */
};

/* Creates @path if it is missing. For the log: @setting names the configuration key of @path,
 * @danger says what clients can do to the files without the clone. */
int folder_open(struct folder *folder, const char *path, const char *setting, const char *danger);
void folder_close(struct folder *folder);

/* Opens a file read-only. With the clone, nobody can reopen the descriptor for writing through
 * /proc/self/fd. A descriptor or a negative errno. */
int folder_open_readonly(const struct folder *folder, const char *name);

/* Lists the folder @name of @folder, "." for @folder itself. NULL: see errno. */
DIR *folder_list(const struct folder *folder, const char *name);
