/* The device nodes of the resource manager (rm.c). Every process makes one of its own, or takes the
 * one that has the number of its entry, as only root may make them. */
#include "simcuda/machine/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "weir/rm.h"

#define NODES 64u

static int make_node(const char *path, mode_t mode)
{
	unlink(path);
	if (mknod(path, S_IFCHR | mode, makedev(RM_DEVICE_MAJOR, RM_DEVICE_MINOR)) < 0)
		return -errno;
	return chmod(path, mode) < 0 ? -errno : 0; /* whatever the umask is */
}

/* One's own needs no name. */
int machine_rm_open(const struct machine *m)
{
	char path[320];
	int fd = -1;

	snprintf(path, sizeof(path), "%s/nvidiactl-%u", m->folder, m->self);
	if (make_node(path, 0600) == 0) {
		fd = open(path, O_PATH | O_CLOEXEC);
		unlink(path);
		return fd;
	}
	snprintf(path, sizeof(path), "%s/nvidiactl/%u", m->folder, m->self);
	return open(path, O_PATH | O_CLOEXEC);
}

void machine_rm_make_nodes(const struct machine *m)
{
	char path[320];

	snprintf(path, sizeof(path), "%s/nvidiactl/%u", m->folder, NODES - 1);
	if (access(path, F_OK) == 0)
		return;
	snprintf(path, sizeof(path), "%s/nvidiactl", m->folder);
	if (mkdir(path, 0755) == 0)
		(void)chmod(path, 0755);
	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(path, sizeof(path), "%s/nvidiactl/%u", m->folder, i);
		if (make_node(path, 0666) < 0)
			return;
	}
}
