#include "robustness/compat/socket.h"

#include "robustness/compat/protocol-1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

void old_fail(const char *what)
{
	printf("compat: %s (%s)\n", what, strerror(errno));
	exit(1);
}

int old_socket(const char *path, int listens)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0)
		old_fail("no socket");
	if (!listens && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		old_fail("cannot connect");
	if (listens && (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
			chmod(path, 0666) < 0 || listen(fd, OLD_SIDE_MAX) < 0))
		old_fail("cannot listen");
	return fd;
}

ssize_t old_receive(int socket, void *packet, size_t size, int *fds, size_t *n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(OLD_FDS_MAX * sizeof(int))];
	struct iovec data = {.iov_base = packet, .iov_len = size};
	struct msghdr header = {.msg_iov = &data,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *rights = got > 0 ? CMSG_FIRSTHDR(&header) : NULL;

	*n = 0;
	if (rights && rights->cmsg_type == SCM_RIGHTS) {
		*n = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(rights), *n * sizeof(int));
	}
	return got;
}

void old_send(int socket, const void *packet, size_t size, const int *fds, size_t n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(OLD_FDS_MAX * sizeof(int))] = {0};
	struct iovec data = {.iov_base = (void *)packet, .iov_len = size};
	struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};

	if (n) {
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, n * sizeof(int));
	}
	if (sendmsg(socket, &header, MSG_NOSIGNAL) != (ssize_t)size)
		old_fail("cannot send");
}

void *old_map(int fd, int protection)
{
	void *page = mmap(NULL, OLD_PAGE_SIZE, protection, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		old_fail("cannot map a page");
	return page;
}
