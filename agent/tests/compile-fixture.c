#include "compile-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weir/base.h"

static void die(const char *what)
{
	perror(what);
	abort();
}

int fixture_sealed(const void *bytes, size_t size, int seals)
{
	int fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	for (size_t at = 0; at < size;) {
		ssize_t n = write(fd, (const char *)bytes + at, size - at);
		if (n <= 0)
			die("write");
		at += (size_t)n;
	}
	/* EBUSY: the kernel holds a page of the file for a moment. */
	while (fcntl(fd, F_ADD_SEALS, seals) < 0)
		if (errno != EBUSY)
			die("seals");
	return fd;
}

int fixture_file_with(const char *kernel, const void *image, size_t size, uint32_t sm,
		      uint32_t forms, uint32_t flags)
{
	size_t name_size = strlen(kernel) + 1;
	struct weir_compile_file head = {
		.magic = WEIR_COMPILE_MAGIC,
		.version = 1,
		.sm = sm,
		.forms = forms,
		.flags = flags,
		.name = sizeof(head),
		.name_size = name_size,
		.image = sizeof(head) + name_size,
		.image_size = size,
	};
	char *bytes = malloc(sizeof(head) + name_size + size);

	if (!bytes)
		die("request");
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + head.name, kernel, name_size);
	memcpy(bytes + head.image, image, size);
	int fd = fixture_sealed(bytes, head.image + size, FIXTURE_SEALS);
	free(bytes);
	return fd;
}

int fixture_file(const char *kernel, const void *image, size_t size, uint32_t sm, uint32_t forms)
{
	return fixture_file_with(kernel, image, size, sm, forms, 0);
}

static void take_answer(struct compile_client *client, const struct weir_compiled *message, int fd)
{
	struct requester *requester = container_of(client, struct requester, client);

	if (requester->fd >= 0)
		close(requester->fd);
	requester->ids[requester->n++ % FIXTURE_ANSWERS] = message->id;
	requester->status = (enum weir_compile_status)message->status;
	memcpy(requester->text, message->text, sizeof(requester->text));
	requester->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void fixture_init(struct requester *requester)
{
	*requester = (struct requester){
		.client = {.answer = take_answer, .container = &requester->container}, .fd = -1};
}

void fixture_wait(struct loop *loop, const struct requester *requester, unsigned n)
{
	while (requester->n < n)
		if (loop_step(loop, -1) < 0)
			die("loop");
}

const char *fixture_program(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);

	path[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(path, '/');
	if (!slash)
		die("/proc/self/exe");
	snprintf(slash, 32, "/../bin/weir-compile");
	return path;
}
