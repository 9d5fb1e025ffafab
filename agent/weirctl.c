/* weirctl: asks the agent of this node. */
#include <argp.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "table.h"

#include "weir/base.h"

#define DEFAULT_SOCKET "/run/weir-agent/control.sock"
#define ANSWER_MAX     (64u << 20)

const char *argp_program_version = "weirctl " WEIR_VERSION;

struct arguments {
	const char *socket;
	const char *command;
	bool json;
};

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 's':
		arguments->socket = value;
		return 0;
	case 'j':
		arguments->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->command || strcmp(value, "status") != 0)
			argp_error(state, "unknown command `%s`", value);
		arguments->command = value;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"socket", 's', "PATH", 0, "The agent's control socket (" DEFAULT_SOCKET ")", 0},
	{"json", 'j', NULL, 0, "Print JSON, not a table", 0},
	{0},
};

static const struct argp description = {
	.options = options,
	.parser = parse,
	.args_doc = "status",
	.doc = "Shows who uses this node's GPUs.",
};

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}

/* Everything until the end of file, with a NUL behind it. */
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

static int ask(const char *path, char **answer)
{
	static const char request[] = "{\"command\": \"status\"}\n";
	cleanup(closep) int fd = connect_to(path);

	if (fd < 0)
		return fd;
	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		return -errno;
	return read_all(fd, answer);
}

static int show(const char *answer, bool json)
{
	cJSON *root = cJSON_Parse(answer);
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(root, "error"));
	int result = 0;

	if (!root || error) {
		fprintf(stderr, "weirctl: the agent answers: %s\n", error ? error : "nothing");
		result = 1;
	} else if (json) {
		printf("%s\n", answer);
	} else {
		table_print(stdout, root);
	}
	cJSON_Delete(root);
	return result;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.socket = DEFAULT_SOCKET};
	cleanup(freep) char *answer = NULL;

	argp_parse(&description, argc, argv, 0, NULL, &arguments);
	int r = ask(arguments.socket, &answer);
	if (r < 0) {
		fprintf(stderr, "weirctl: agent at %s: %s\n", arguments.socket, strerror(-r));
		return 1;
	}
	return show(answer, arguments.json);
}
