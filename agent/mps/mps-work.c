/* A server ends the work of one of its clients, which may be in the middle of a kernel, with the
 * command `terminate_client`: the client's context is broken then, and the others' is not. NVIDIA
 * asks for this before the process of a client with work on the GPU is killed. */
#include <stdio.h>
#include <string.h>

#include "mps/mps.h"

#include "weir/base.h"

void mps_work_forget(struct mps_daemon *daemon)
{
	mps_question_stop(&daemon->work.question);
	daemon->work.client = 0;
}

static void ask_next(struct mps_daemon *daemon);

/* The answer does not matter: a server without this client has nothing to end. */
static void answered(struct mps_question *question, const char *answer)
{
	(void)answer;
	ask_next(container_of(question, struct mps_daemon, work.question));
}

/* The servers of a daemon that serves one user at a time, one after the other. */
static void ask_next(struct mps_daemon *daemon)
{
	struct mps_work *work = &daemon->work;
	char command[64];

	work->done = work->asked >= daemon->n_servers;
	if (work->done)
		return;
	snprintf(command, sizeof(command), "terminate_client %d %d",
		 (int)daemon->servers[work->asked++], (int)work->client);
	work->done = mps_ask(&work->question, daemon->mps->loop, &daemon->mps->program,
			     daemon->folder, command, MPS_ANSWER_SECONDS, answered) < 0;
}

/* Only of the daemon of a level are clients known. */
static bool may_serve(const struct mps_daemon *daemon, pid_t pid)
{
	bool found = daemon->request.level == MPS_ALL;

	for (unsigned i = 0; !found && i < daemon->n_clients; i++)
		found = daemon->clients[i] == pid;
	return found && daemon->pid && daemon->n_servers;
}

static enum mps_ending end_work(struct mps_daemon *daemon, pid_t pid)
{
	struct mps_work *work = &daemon->work;

	if (!may_serve(daemon, pid))
		return MPS_NOT_SERVED;
	if (work->client == pid && work->done)
		return MPS_ENDED_WORK;
	if (!work->client || work->done) {
		work->client = pid;
		work->asked = 0;
		ask_next(daemon);
	}
	return MPS_ENDS_WORK;
}

enum mps_ending mps_end_work(struct mps *mps, const struct gpu *gpu, pid_t pid)
{
	enum mps_ending ending = MPS_NOT_SERVED;
	struct mps_daemon *daemon = mps->daemons;

	for (; daemon && ending == MPS_NOT_SERVED; daemon = daemon->next)
		if (strcmp(daemon->request.gpu, gpu->id) == 0)
			ending = end_work(daemon, pid);
	return ending;
}
