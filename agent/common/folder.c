#include "common/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "weir/base.h"
#include "weir/file.h"
#include "weir/log.h"

/* A read-only clone of @path's mount, detached: no other process can see or change it. */
static int clone_readonly(const char *path, const char *danger)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	cleanup(closep) int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0) {
		log_warning("no read-only clone of %s (%s): %s", path, strerror(errno), danger);
		return -1;
	}
	return take_fd(tree);
}

/* Like mkdir -p. */
static int make_folder(const char *path)
{
	char part[4096];

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return -ENAMETOOLONG;
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int folder_open(struct folder *folder, const char *path, const char *setting, const char *danger)
{
	int r = make_folder(path);

	*folder = (struct folder){.dir = -1, .readonly = -1};
	if (r == 0) {
		folder->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = folder->dir < 0 ? -errno : 0;
	}
	if (r < 0) {
		log_error("%s %s: %s", setting, path, strerror(-r));
		return r;
	}
	folder->readonly = clone_readonly(path, danger);
	return 0;
}

void folder_close(struct folder *folder)
{
	closep(&folder->dir);
	closep(&folder->readonly);
	folder->dir = folder->readonly = -1;
}

int folder_open_readonly(const struct folder *folder, const char *name)
{
	return file_open(folder->readonly >= 0 ? folder->readonly : folder->dir, name,
			 O_RDONLY | O_NOFOLLOW);
}

DIR *folder_list(const struct folder *folder, const char *name)
{
	int fd = openat(folder->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list)
		closep(&fd);
	return list;
}
