/* A folder of the agent's own, of whose files clients get descriptors. */
#pragma once

struct folder {
	int dir;
	int readonly; /* a read-only clone of its mount; -1: not permitted here */
};

/* Makes @path where it is missing. @setting: where it comes from, @danger: what can be done to its
 * files where there is no clone; both for the log. */
int folder_open(struct folder *folder, const char *path, const char *setting, const char *danger);
void folder_close(struct folder *folder);

/* A descriptor of a file that can be read, and not be opened again for writing by /proc/self/fd
 * (that needs the clone). Or a negative errno. */
int folder_open_readonly(const struct folder *folder, const char *name);
