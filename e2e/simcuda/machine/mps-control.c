/* A stand-in for nvidia-cuda-mps-control, for tests: it is started, asked and ended as the real
 * one.
 *
 *   -f [-multiuser-server]  the daemon, in the foreground; -d: behind us
 *   (nothing)               asks the daemon what its input says: get_server_list, get_server_status
 * PID, get_client_list PID, terminate_client PID PID, quit
 *
 * A test makes clients and faults with words that the real one does not have: `sim_enter PID`,
 * `sim_leave PID`, `sim_fault`; `sim_server PID` takes that process for its server. The simulated
 * libcuda says `sim_client` and stays connected. The first client starts a server, which has the
 * channel groups of the clients (mps-server.h). As with the real one, `quit` waits for the last
 * client, and a fault passes when all are gone. Files beside the pipes' folder change that:
 * `sim-single-user`: it knows no -multiuser-server; `sim-stuck`: a fault stays; `sim-mute`: it does
 * not answer. */
#include "simcuda/machine/mps-server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS_MAX 64
#define LINE_MAX_   256

static struct {
	pid_t server;
	int news;   /* from the server: a byte for each fault */
	int orders; /* to the server: pids of clients whose work it is to end */
	struct {
		int pid, fd; /* fd -1: it has no connection */
	} clients[CLIENTS_MAX];
	int n;
	bool faulted, leaving, given; /* the server is the test's process */
} state = {.news = -1, .orders = -1};

static const char *pipes(void)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return folder ? folder : "/tmp/nvidia-mps";
}

static bool wants(const char *what)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/../sim-%s", pipes(), what);
	return access(path, F_OK) == 0;
}

static struct sockaddr_un address_of(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", pipes(), name);
	if (n < 0 || n >= (int)sizeof(address.sun_path)) {
		fprintf(stderr, "%s/%s: too long for a socket\n", pipes(), name);
		exit(1);
	}
	return address;
}

static void start_server(void)
{
	char ready;
	int news[2], orders[2];

	if (pipe(news) < 0 || pipe(orders) < 0)
		exit(1);
	state.server = fork();
	if (state.server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The connections belong to the parent. */
		dup2(news[1], 3);
		dup2(orders[0], 4);
		close_range(5, ~0u, 0);
		execl("/proc/self/exe", "sim-mps-server", "-server", NULL);
		_exit(127);
	}
	close(news[1]);
	close(orders[0]);
	state.news = news[0];
	state.orders = orders[1];
	if (read(state.news, &ready, 1) < 1)
		fprintf(stderr, "the server cannot start\n");
}

/* Takes over @fd. */
static void enter(int pid, int fd)
{
	if (!state.server)
		start_server();
	if (state.n == CLIENTS_MAX) {
		if (fd >= 0)
			close(fd);
		return;
	}
	state.clients[state.n].pid = pid;
	state.clients[state.n++].fd = fd;
}

static void leave_at(int i)
{
	if (state.clients[i].fd >= 0)
		close(state.clients[i].fd);
	state.clients[i] = state.clients[--state.n];
	if (state.n == 0 && !wants("stuck"))
		state.faulted = false;
}

static void leave(int pid)
{
	for (int i = state.n - 1; i >= 0; i--)
		if (state.clients[i].pid == pid)
			leave_at(i);
}

/* A client of the simulated GPU stays connected. */
static void enter_connected(FILE *out)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	int fd = dup(fileno(out));

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return;
	enter(peer.pid, fd);
	fprintf(out, "ok\n");
}

/* A client that is connected stays so until its process ends. */
static void terminate(FILE *out, int pid)
{
	uint32_t number = (uint32_t)pid;
	bool found = false;

	for (int i = state.n - 1; i >= 0; i--) {
		if (state.clients[i].pid != pid)
			continue;
		found = true;
		if (state.clients[i].fd < 0)
			leave_at(i);
	}
	if (!found || write(state.orders, &number, sizeof(number)) < 0)
		fprintf(out, "Client %d not found\n", pid);
}

static void answer(FILE *out, const char *line)
{
	char word[32] = "";
	int pid = 0, client = 0;

	sscanf(line, "%31s %d %d", word, &pid, &client);
	if (strcmp(word, "sim_enter") == 0) {
		enter(pid, -1);
	} else if (strcmp(word, "sim_client") == 0) {
		enter_connected(out);
	} else if (strcmp(word, "sim_leave") == 0) {
		leave(pid);
	} else if (strcmp(word, "sim_fault") == 0) {
		state.faulted = true;
	} else if (strcmp(word, "sim_server") == 0) {
		state.server = pid;
		state.given = true;
	} else if (strcmp(word, "quit") == 0) {
		state.leaving = true;
	} else if (strcmp(word, "get_server_list") == 0) {
		if (state.server)
			fprintf(out, "%d\n", (int)state.server);
	} else if (strcmp(word, "get_server_status") == 0 && pid == state.server) {
		fprintf(out, "%s\n", state.faulted ? "FAULT" : "ACTIVE");
	} else if (strcmp(word, "get_client_list") == 0 && pid == state.server) {
		for (int i = 0; i < state.n; i++)
			fprintf(out, "%d\n", state.clients[i].pid);
	} else if (strcmp(word, "terminate_client") == 0 && pid == state.server) {
		terminate(out, client);
	} else {
		fprintf(out, "Unknown command \"%s\"\n", word);
	}
}

static void serve_one(int listener)
{
	int fd = accept(listener, NULL, NULL);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	char line[LINE_MAX_] = "";

	if (!out)
		return;
	if (read(fd, line, sizeof(line) - 1) > 0)
		answer(out, line);
	fclose(out);
}

static void hear_server(void)
{
	char word[64];

	if (read(state.news, word, sizeof(word)) > 0) {
		state.faulted = state.n > 0;
		return;
	}
	close(state.news); /* it has ended */
	state.news = -1;
}

static void serve_next(int listener)
{
	struct pollfd wait[2 + CLIENTS_MAX] = {{.fd = listener, .events = POLLIN},
					       {.fd = state.news, .events = POLLIN}};
	char word[64];

	for (int i = 0; i < state.n; i++)
		wait[2 + i] = (struct pollfd){.fd = state.clients[i].fd, .events = POLLIN};
	if (poll(wait, 2 + (nfds_t)state.n, -1) < 0)
		return;
	if (wait[1].revents)
		hear_server();
	for (int i = state.n - 1; i >= 0; i--)
		if (wait[2 + i].revents && read(state.clients[i].fd, word, sizeof(word)) <= 0)
			leave_at(i);
	if (wait[0].revents)
		serve_one(listener);
}

static void write_pid(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", pipes());
	FILE *file = fopen(path, "w");
	if (!file)
		return;
	fprintf(file, "%d", (int)getpid());
	fclose(file);
}

/* A client connects as soon as the name is there, so the socket listens before it gets the name. */
static int listen_at(const struct sockaddr_un *address)
{
	struct sockaddr_un early = address_of("control.new");
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	unlink(early.sun_path);
	if (listener < 0 || bind(listener, (struct sockaddr *)&early, sizeof(early)) < 0 ||
	    listen(listener, CLIENTS_MAX) < 0 || chmod(early.sun_path, 0666) < 0 ||
	    rename(early.sun_path, address->sun_path) < 0) {
		perror(address->sun_path);
		return -1;
	}
	return listener;
}

static int serve(bool behind)
{
	struct sockaddr_un address = address_of("control");
	int listener = listen_at(&address);

	if (listener < 0)
		return 1;
	printf("Starting control daemon using socket %s\n", address.sun_path);
	fflush(stdout);
	if (behind && daemon(1, 0) < 0)
		return 1;
	write_pid();
	while (!state.leaving || state.n > 0)
		serve_next(listener);
	if (state.server && !state.given)
		kill(state.server, SIGKILL);
	return 0;
}

static int ask(void)
{
	struct sockaddr_un address = address_of("control");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[LINE_MAX_];
	ssize_t n;

	if (wants("mute") || fd < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		puts("Cannot find MPS control daemon process");
		return 1;
	}
	if (!fgets(text, sizeof(text), stdin) || write(fd, text, strlen(text)) < 0)
		return 1;
	shutdown(fd, SHUT_WR);
	while ((n = read(fd, text, sizeof(text))) > 0)
		if (write(1, text, (size_t)n) < 0)
			return 1;
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return ask();
	if (strcmp(argv[1], "-server") == 0)
		mps_server_run(pipes(), 3, 4);
	if (argc > 2 && wants("single-user")) {
		fprintf(stderr, "unknown option %s\n", argv[2]);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	return serve(strcmp(argv[1], "-d") == 0);
}
