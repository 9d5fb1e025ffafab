/* What an honest container sees of the agent while others attack it, and how soon. */
#include "robustness/hostile/client.h"
#include "robustness/hostile/kernel.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weir/base.h"

#define PAUSE_US 100000

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double tell(const char *what, double since)
{
	double now = milliseconds();

	printf("%s %.3f\n", what, now - since);
	fflush(stdout);
	return now;
}

/* In a process of its own, as the account is a process's. */
static void have_account(void)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX], status = 1;
	double began = milliseconds();
	pid_t child = fork();
	size_t n;

	if (child < 0)
		cannot("fork");
	if (child == 0)
		_exit(client_account(&message, fds, &n) ? 0 : 1);
	waitpid(child, &status, 0);
	if (status != 0)
		harm("an honest process has no account");
	tell("account", began);
}

static void have_kernel(int socket)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	double began = milliseconds();
	size_t n;

	kernel_ask(socket, 1, kernel_new_salt());
	do {
		if (!client_hear(socket, &message, fds, &n, 60000))
			harm("no answer to an honest request for a kernel");
		close_fds(fds, n);
	} while (message.header.type != WEIR_COMPILED);
	if (message.compiled.status != WEIR_COMPILE_OK)
		harm("an honest request for a kernel: %s (%u)", message.compiled.text,
		     message.compiled.status);
	tell("compile", began);
}

/* WELCOME with a bit of its own if it is above others, an account, and a kernel. */
void honest_once(void)
{
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];
	double began = milliseconds();
	int socket = client_join(&welcome, fds);

	if (socket < 0)
		harm("an honest client is not let in");
	/* The lowest level holds nobody back, so it needs none. */
	if (welcome.welcome.level > 0 && welcome.welcome.bit == WEIR_BIT_SHARED)
		harm("an honest client of level %u has no bit of its own", welcome.welcome.level);
	tell("welcome", began);
	close_fds(fds, welcome_fds(&welcome));
	have_account();
	have_kernel(socket);
	close(socket);
}

/* Lives on while the file WEIR_PAUSE exists, and does nothing. Says so once each time. */
static bool paused(void)
{
	static bool said;
	const char *path = getenv("WEIR_PAUSE");
	bool is = path && access(path, F_OK) == 0;

	if (is && !said) {
		puts("paused");
		fflush(stdout);
	}
	said = is;
	return is;
}

void honest_again(void)
{
	for (;; usleep(PAUSE_US))
		if (!paused())
			honest_once();
}

/* What each exec costs; the loader opens the preload file and libweir. */
void honest_execs(void)
{
	char *const argv[] = {(char *)"true", NULL};

	for (;; usleep(PAUSE_US / 2)) {
		double began = milliseconds();
		int status = 1;
		pid_t child;
		if (paused())
			continue;
		if ((errno = posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ)))
			cannot("start a program");
		waitpid(child, &status, 0);
		if (status != 0)
			harm("exec of /bin/true fails: %d", status);
		tell("exec", began);
	}
}
