/* Opens files that somebody else can reach, without waiting for anybody. A plain open(2) waits 45 s
 * for a process with a lease on the file (fcntl(2), F_SETLEASE), which takes no more than a
 * read-only descriptor and the owner's user id. It waits forever for the other end of a FIFO.
 * `make lint` (opens) finds other opens. */
#pragma once

#include <sys/types.h>

/* Opens the regular file @path, relative to the folder @dir or AT_FDCWD. @flags as of open(2);
 * O_CREAT creates it for its owner only. Returns a descriptor that closes on exec, or a negative
 * errno: -EWOULDBLOCK: a process has a lease on it; -EISDIR: a folder; -EINVAL: another kind. */
int file_open(int dir, const char *path, int flags);

/* Reads the first @size - 1 bytes of a file as a string, or fewer if it is shorter. Returns their
 * number; a caller that must have the whole file takes @size - 1 for too large. A negative errno:
 * see file_open(); @text is empty. */
ssize_t file_read(int dir, const char *path, char *text, size_t size);

/* The contents of the regular file @fd, for free(), and their size. NULL: it is empty, has more
 * than
 * @most bytes, or cannot be read; @size is 0. A negative @fd is fine. */
void *file_load(int fd, size_t most, size_t *size);
