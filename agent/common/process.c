#include "common/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weir/file.h"

int process_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

bool process_is_ending(pid_t pid)
{
	char path[32], text[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	return file_read(AT_FDCWD, path, text, sizeof(text)) > 0 && strncmp(text, "0 ", 2) == 0;
}

int process_signal(int process, int number)
{
	return syscall(SYS_pidfd_send_signal, process, number, NULL, 0) < 0 ? -errno : 0;
}

uint64_t process_started(pid_t pid)
{
	enum { NAME = 2, START = 22 }; /* fields of /proc/PID/stat */
	char path[32], text[1024];
	uint64_t start = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file_read(AT_FDCWD, path, text, sizeof(text));
	/* The process's name may contain anything; it ends at the last parenthesis. */
	const char *at = strrchr(text, ')');
	for (int field = NAME; at && field < START; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%" SCNu64, &start) == 1 ? start : 0;
}
