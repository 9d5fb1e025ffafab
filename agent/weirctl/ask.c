#include "weirctl/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "weir/base.h"

#define ANSWER_MAX (64u << 20)

/* @wait: ns, timeout of each send and receive. */
static int connect_to(const char *path, uint64_t wait)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = (time_t)(wait / NS_PER_S)};
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}

/* Reads until the end of file; @out ends with NUL. */
static int read_all(int fd, char **out)
{
	cleanup(freep) char *text = NULL;
	size_t room = 0, size = 0;

	for (;;) {
		if (size + 1 >= room) {
			room = room ? 2 * room : 65536;
			char *larger = room > ANSWER_MAX ? NULL : realloc(text, room);
			if (!larger)
				return -ENOMEM;
			text = larger;
		}
		ssize_t n = read(fd, text + size, room - size - 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		if (n > 0)
			size += (size_t)n;
	}
	text[size] = '\0';
	*out = take(text);
	return 0;
}

static int exchange(const struct arguments *arguments, const cJSON *request, char **answer)
{
	cleanup(freep) char *text = cJSON_PrintUnformatted(request);
	cleanup(closep) int fd =
		connect_to(arguments->socket, arguments->wait + arguments->records);

	if (fd < 0)
		return fd;
	if (!text)
		return -ENOMEM;
	if (send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_MORE) < 0 ||
	    send(fd, "\n", 1, MSG_NOSIGNAL) < 0)
		return -errno;
	return read_all(fd, answer);
}

cJSON *ask(const struct arguments *arguments, cJSON *request)
{
	cleanup(freep) char *text = NULL;

	cJSON_AddStringToObject(request, "command", arguments->command);
	int r = exchange(arguments, request, &text);
	cJSON_Delete(request);
	if (r < 0) {
		fprintf(stderr, "weirctl: agent at %s: %s\n", arguments->socket,
			r == -EAGAIN ? "it does not answer" : strerror(-r));
		return NULL;
	}
	cJSON *answer = cJSON_Parse(text);
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(answer, "error"));
	if (answer && !error)
		return answer;
	fprintf(stderr, "weirctl: the agent answers: %s\n", error ? error : "nothing");
	cJSON_Delete(answer);
	return NULL;
}

void print_json(const cJSON *answer)
{
	cleanup(freep) char *text = cJSON_PrintUnformatted(answer);

	if (text)
		printf("%s\n", text);
}
