#include "shm/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "weir/base.h"
#include "weir/log.h"

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ull << 14)
#endif

#define WARNING_S 3600

struct request {
	int folder;
	const char *name;
	int result;
};

static int deny_truncation(void)
{
	struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_TRUNCATE};
	cleanup(closep) int fd =
		(int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	if (fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	return 0;
}

/* Restrictions are a thread's own, and go with it. */
static void *open_denied(void *argument)
{
	struct request *request = argument;
	int r = deny_truncation();

	if (r < 0)
		log_limited(LOG_WARNING, WARNING_S,
			    "no Landlock (%s): clients can truncate the demand pages they write",
			    strerror(-r));
	request->result = openat(request->folder, request->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (request->result < 0)
		request->result = -errno;
	return NULL;
}

int guard_open(int folder, const char *name)
{
	struct request request = {folder, name, -1};
	pthread_t thread;
	int r = pthread_create(&thread, NULL, open_denied, &request);

	if (r > 0)
		return -r;
	pthread_join(thread, NULL);
	return request.result;
}

static int set_immutable(int fd, bool on)
{
	int flags = 0;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -errno;
	int wanted = on ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
	return wanted != flags && ioctl(fd, FS_IOC_SETFLAGS, &wanted) < 0 ? -errno : 0;
}

void guard_on(int fd)
{
	struct statfs info;
	int r = -EOPNOTSUPP;

	if (fstatfs(fd, &info) == 0 && info.f_type == TMPFS_MAGIC)
		r = set_immutable(fd, true);
	if (r < 0)
		log_limited(LOG_WARNING, WARNING_S,
			    "demand pages cannot be made immutable (%s): root in a container can "
			    "damage those that it writes",
			    r == -EOPNOTSUPP ? "stateDir is no tmpfs" : strerror(-r));
}

void guard_off(int fd)
{
	set_immutable(fd, false);
}
