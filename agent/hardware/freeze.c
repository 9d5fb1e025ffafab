#include "hardware/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/process.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"

#define LOCK   "freezer"
#define PREFIX "frozen-"

struct name {
	char text[NAME_MAX + 32];
};

static struct name file_of(const char *gpu, pid_t pid)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%s/" PREFIX "%d", gpu, (int)pid);
	return name;
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

static void recover_gpu(const struct folder *root, const char *gpu)
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

static void recover_all(const struct folder *root)
{
	DIR *folder = folder_list(root, ".");

	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder));)
		if (entry->d_name[0] != '.')
			recover_gpu(root, entry->d_name);
	closedir(folder);
}

int freezer_claim(struct freezer *freezer)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (freezer->lock >= 0)
		return 0;
	cleanup(closep) int fd = file_open(freezer->root->dir, LOCK, O_RDWR | O_CREAT);
	if (fd < 0)
		return error_origin(fd);
	/* Children do not inherit such a lock, so it lasts no longer than this process. */
	if (fcntl(fd, F_SETLK, &whole) < 0)
		return errno == EACCES ? -EAGAIN : -errno;
	freezer->lock = take_fd(fd);
	recover_all(freezer->root);
	return 0;
}

void freezer_deinit(struct freezer *freezer)
{
	closep(&freezer->lock);
	freezer->lock = -1;
}

/* First the file: an owner that dies in between leaves a process that runs. */
int freeze_stop(struct freezer *freezer, const char *gpu, pid_t pid, int process)
{
	int dir = freezer->root->dir, r = freezer_claim(freezer);
	struct name name = file_of(gpu, pid);

	if (r < 0)
		return r;
	unlinkat(dir, name.text, 0);
	cleanup(closep) int fd = file_open(dir, name.text, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0)
		return error_origin(fd);
	if (dprintf(fd, "%" PRIu64 "\n", process_started(pid)) < 0)
		return error_origin(-errno);
	return process_signal(process, SIGSTOP);
}

void freeze_go_on(const struct freezer *freezer, const char *gpu, pid_t pid, int process)
{
	struct name name = file_of(gpu, pid);
	int dir = freezer->root->dir;
	struct stat info;

	if (fstatat(dir, name.text, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	process_signal(process, SIGCONT);
	unlinkat(dir, name.text, 0);
}
