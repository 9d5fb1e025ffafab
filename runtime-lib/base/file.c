#include "weir/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "weir/base.h"

int file_open(int dir, const char *path, int flags)
{
	cleanup(closep) int fd = openat(dir, path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) < 0)
		return -errno;
	if (!S_ISREG(info.st_mode))
		return S_ISDIR(info.st_mode) ? -EISDIR : -EINVAL;
	return take_fd(fd);
}

ssize_t file_read(int dir, const char *path, char *text, size_t size)
{
	cleanup(closep) int fd = file_open(dir, path, O_RDONLY);
	size_t n = 0;
	ssize_t got = fd;

	text[0] = '\0';
	/* Files of /proc may come in several parts. */
	while (got >= 0 && n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	if (fd < 0 || got < 0)
		return fd < 0 ? fd : -errno;
	text[n] = '\0';
	return (ssize_t)n;
}

void *file_load(int fd, size_t most, size_t *size)
{
	struct stat info;
	size_t done = 0;

	*size = 0;
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
	    (size_t)info.st_size > most)
		return NULL;
	size_t all = (size_t)info.st_size;
	cleanup(freep) char *data = malloc(all);
	while (data && done < all) {
		ssize_t n = pread(fd, data + done, all - done, (off_t)done);
		if (n == 0 || (n < 0 && errno != EINTR))
			return NULL;
		done += n > 0 ? (size_t)n : 0;
	}
	*size = done;
	return take(data);
}
