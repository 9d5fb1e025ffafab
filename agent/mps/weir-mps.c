/* weir-mps: the supervisor of a node's MPS daemons. It starts daemons on the agent's request
 * (mps-process.h), and ends them when it ends. The agent does everything else. */
#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "config/config.h"
#include "mps/mps-process.h"

#include "weir/base.h"
#include "weir/log.h"

#define CHILDREN_MAX 256

__attribute__((visibility("default"))) const char *argp_program_version = "weir-mps " WEIR_VERSION;

struct child {
	pid_t pid;
	char folder[MPS_PATH_MAX]; /* of its daemon */
};

struct supervisor {
	struct loop loop;
	struct loop_signals signals;
	struct loop_io requests;
	int socket;
	struct config config;
	struct child children[CHILDREN_MAX];
};

/* The folder's entry, or a free one. NULL: all are in use. */
static struct child *child_of(struct supervisor *supervisor, const char *folder)
{
	struct child *empty = NULL;

	for (size_t i = 0; i < CHILDREN_MAX; i++) {
		struct child *child = &supervisor->children[i];
		if (child->pid && strcmp(child->folder, folder) == 0)
			return child;
		if (!child->pid)
			empty = child;
	}
	return empty;
}

static void start(struct supervisor *supervisor, const struct mps_request *request)
{
	char folder[MPS_PATH_MAX];
	struct mps_program program;

	mps_folder(folder, supervisor->config.mps.dir, request);
	struct child *child = child_of(supervisor, folder);
	if (!child || child->pid)
		return;
	/* The agent asks only if it found the program itself. */
	pid_t pid = mps_program_find(&program, &supervisor->config.mps)
			    ? mps_program_start(&program, folder, request)
			    : -ENOENT;
	if (pid < 0) {
		log_error("MPS daemon: %s: %s", folder, strerror(-pid));
		return;
	}
	child->pid = pid;
	memcpy(child->folder, folder, sizeof(folder));
	log_info("MPS daemon: %s: started, process %d", folder, (int)pid);
}

static void requested(struct loop_io *io)
{
	struct supervisor *supervisor = container_of(io, struct supervisor, requests);
	struct mps_request request;

	while (mps_supervisor_next(supervisor->socket, &request))
		start(supervisor, &request);
}

static void reap(struct supervisor *supervisor)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (size_t i = 0; i < CHILDREN_MAX; i++)
			if (supervisor->children[i].pid == pid) {
				log_info("MPS daemon: %s: ended", supervisor->children[i].folder);
				supervisor->children[i].pid = 0;
			}
}

static void raised(struct loop_signals *signals, int number)
{
	struct supervisor *supervisor = container_of(signals, struct supervisor, signals);

	if (number == SIGCHLD)
		reap(supervisor);
	else
		loop_stop(&supervisor->loop);
}

static int supervise(struct supervisor *supervisor)
{
	static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT};
	int r = loop_init(&supervisor->loop);

	if (r == 0)
		r = loop_signals_init(&supervisor->signals, &supervisor->loop, numbers,
				      countof(numbers), raised);
	if (r == 0)
		r = supervisor->socket = mps_supervisor_listen(supervisor->config.mps.dir);
	if (r >= 0)
		r = loop_io_init(&supervisor->requests, &supervisor->loop, supervisor->socket,
				 EPOLLIN, requested);
	if (r == 0)
		r = loop_run(&supervisor->loop);
	for (size_t i = 0; i < CHILDREN_MAX; i++)
		if (supervisor->children[i].pid)
			mps_daemon_end(supervisor->children[i].pid);
	loop_io_deinit(&supervisor->requests);
	loop_signals_deinit(&supervisor->signals);
	loop_deinit(&supervisor->loop);
	closep(&supervisor->socket);
	return r;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	const char **path = state->input;

	if (key != 'c')
		return ARGP_ERR_UNKNOWN;
	*path = value;
	return 0;
}

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "The agent's configuration; only `mps` is used", 0},
	{0},
};

static const struct argp description = {
	.options = options,
	.parser = parse,
	.doc = "Runs the MPS daemons that weir-agent asks for, also while there is no agent.",
};

int main(int argc, char **argv)
{
	struct supervisor supervisor = {.socket = -1};
	const char *path = NULL;
	char message[512] = "no memory";

	argp_parse(&description, argc, argv, 0, NULL, &path);
	log_init("weir-mps", LOG_INFO);
	int r = config_load(&supervisor.config, path, message, sizeof(message));
	if (r < 0) {
		log_error("%s", message);
		return 2;
	}
	log_set_level(supervisor.config.log_level);
	signal(SIGPIPE, SIG_IGN);
	r = supervise(&supervisor);
	config_deinit(&supervisor.config);
	if (r < 0)
		log_error("%s", strerror(-r));
	return r < 0;
}
