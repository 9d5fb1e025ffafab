#include "hardware/freeze-watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/process.h"
#include "hardware/freeze.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

/* @agent: a pidfd. */
static _Noreturn void watch(const char *state, int agent)
{
	struct pollfd death = {.fd = agent, .events = POLLIN};

	prctl(PR_SET_NAME, "weir-freeze");
	setsid();
	/* Whoever ends all of the agent's processes ends the agent, too. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	while (poll(&death, 1, -1) < 0 && errno == EINTR)
		;
	struct folder root = {open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1};
	struct freezer freezer = {&root, -1};
	int r = root.dir < 0 ? -errno : freezer_claim(&freezer);
	if (r < 0 && r != -EAGAIN)
		log_warning("what the agent had stopped by a signal stays stopped until the next "
			    "agent starts: %s",
			    strerror(-r));
	_exit(0);
}

int freeze_watch_start(const char *state)
{
	cleanup(closep) int agent = process_open(getpid());

	if (agent < 0)
		return error_origin(agent);
	pid_t pid = fork();
	if (pid < 0)
		return error_origin(-errno);
	if (pid == 0)
		watch(state, agent);
	return 0;
}
