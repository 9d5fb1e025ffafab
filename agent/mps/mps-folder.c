#include "mps/mps-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mps/mps-process.h"

#include "weir/base.h"
#include "weir/file.h"
#include "weir/log.h"

#define LOG_MAX (1 << 20) /* bytes */

/* Despite the umask: users of all containers connect in it. */
static int make_folder(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	return chmod(path, 0755) < 0 ? -errno : 0;
}

int mps_folder_make(const char *dir, const char *gpu, const char *folder)
{
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	int r = make_folder(mps_path(dir, gpu).text);
	if (r == 0)
		r = make_folder(folder);
	return r < 0 ? r : make_folder(mps_path(folder, "pipe").text);
}

int mps_folder_show_clients(const char *folder)
{
	struct mps_path shown = mps_path(folder, "client/control");
	int r = make_folder(mps_path(folder, "client").text);

	if (r < 0)
		return r;
	/* From the previous daemon. */
	unlink(shown.text);
	return link(mps_path(folder, "pipe/control").text, shown.text) < 0 ? -errno : 0;
}

void mps_folder_mark_ready(const char *folder, bool ready)
{
	struct mps_path path = mps_path(folder, "ready");

	if (!ready) {
		unlink(path.text);
		return;
	}
	int fd = file_open(AT_FDCWD, path.text, O_WRONLY | O_CREAT | O_EXCL);
	closep(&fd);
}

void mps_folder_trim_log(const char *folder)
{
	struct mps_path path = mps_path(folder, "log");
	struct stat info;

	if (stat(path.text, &info) < 0 || info.st_size <= LOG_MAX)
		return;
	cleanup(closep) int fd = file_open(AT_FDCWD, path.text, O_WRONLY | O_TRUNC | O_NOFOLLOW);
	if (fd < 0)
		log_limited(LOG_WARNING, 3600, "%s: %s", path.text, strerror(-fd));
}
