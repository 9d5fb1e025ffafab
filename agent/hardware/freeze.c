#include "hardware/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/process.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"

#define PREFIX "frozen-"

struct name {
	char text[96];
};

static struct name file_of(const char *gpu, pid_t pid)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%s/" PREFIX "%d", gpu, (int)pid);
	return name;
}

/* First the file: an agent that dies in between leaves a process that runs. */
int freeze_stop(const struct folder *root, const char *gpu, pid_t pid, int process)
{
	struct name name = file_of(gpu, pid);

	unlinkat(root->dir, name.text, 0);
	cleanup(closep) int fd = file_open(root->dir, name.text, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0)
		return error_origin(fd);
	if (dprintf(fd, "%" PRIu64 "\n", process_started(pid)) < 0)
		return error_origin(-errno);
	return process_signal(process, SIGSTOP);
}

void freeze_go_on(const struct folder *root, const char *gpu, pid_t pid, int process)
{
	struct stat info;

	if (fstatat(root->dir, file_of(gpu, pid).text, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	process_signal(process, SIGCONT);
	unlinkat(root->dir, file_of(gpu, pid).text, 0);
}

static void recover(const struct folder *root, const char *gpu, pid_t pid)
{
	struct name name = file_of(gpu, pid);
	char text[32];
	cleanup(closep) int process = process_open(pid);

	/* The kernel gives pids again, but not with the same start time. */
	if (process >= 0 && file_read(root->dir, name.text, text, sizeof(text)) > 0 &&
	    strtoull(text, NULL, 10) == process_started(pid)) {
		log_info("process %d was stopped by an earlier agent: it goes on", (int)pid);
		process_signal(process, SIGCONT);
	}
	unlinkat(root->dir, name.text, 0);
}

void freeze_recover(const struct folder *root, const char *gpu)
{
	DIR *folder = folder_list(root, gpu);

	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder));) {
		int pid = strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0
				  ? atoi(entry->d_name + strlen(PREFIX))
				  : 0;
		if (pid > 0)
			recover(root, gpu, pid);
	}
	closedir(folder);
}
