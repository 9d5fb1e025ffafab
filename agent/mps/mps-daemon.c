#include "mps/mps-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "config/config.h"
#include "common/process.h"
#include "mps/mps-folder.h"

#include "weir/base.h"
#include "weir/log.h"

#define PAUSE_MIN    (100 * NS_PER_MS)
#define PAUSE_MAX    (30 * NS_PER_S)
#define STEADY       (60 * NS_PER_S) /* after this long up, the next pause is the shortest again */
#define LOOK_SOON    (200 * NS_PER_MS) /* while it starts or ends */
#define START_TIME   (10 * NS_PER_S)   /* to answer */
#define QUIT_SECONDS 3
#define STRANDED_MAX 3
#define SILENT_MAX   3

static bool is_of_level(const struct mps_daemon *daemon)
{
	return daemon->request.level != MPS_ALL;
}

/* The numbers at the beginning of an answer. */
static unsigned read_pids(const char *answer, pid_t *out, unsigned max)
{
	unsigned n = 0;
	int pid, used;

	while (n < max && sscanf(answer, "%d%n", &pid, &used) == 1 && pid > 0) {
		out[n++] = pid;
		answer += used;
	}
	return n;
}

static void enter(struct mps_daemon *daemon, enum mps_state state)
{
	daemon->state = state;
	daemon->since = loop_now();
	mps_folder_mark_ready(daemon->folder, state == MPS_UP);
}

static void look_in(struct mps_daemon *daemon, uint64_t delay)
{
	loop_timer_set(&daemon->timer, delay, 0);
}

static uint64_t period(const struct mps_daemon *daemon)
{
	uint64_t usual = daemon->mps->config->check;
	bool steady = daemon->state == MPS_UP && !daemon->faulted && !daemon->n_unknown;

	return steady ? usual : smaller(usual, LOOK_SOON);
}

static void forget_process(struct mps_daemon *daemon)
{
	mps_question_stop(&daemon->question);
	mps_work_forget(daemon);
	loop_io_deinit(&daemon->death);
	closep(&daemon->process);
	daemon->process = -1;
	daemon->pid = 0;
	daemon->n_servers = daemon->n_clients = 0;
	daemon->faulted = false;
	daemon->stranded = 0;
	unlink(mps_path(daemon->folder, "daemon").text);
}

static void start_later(struct mps_daemon *daemon)
{
	enter(daemon, MPS_WAITING);
	look_in(daemon, daemon->pause);
	daemon->pause = smaller(daemon->pause * 2, PAUSE_MAX);
}

/* The daemon ended before it answered: an old program may not know -multiuser-server. */
static void note_refusal(const struct mps_daemon *daemon)
{
	if (daemon->mps->single_user)
		return;
	log_warning("MPS daemon of %s: does not start for several users; %s/log says why",
		    daemon->name, daemon->folder);
	daemon->mps->single_user = true;
}

static void died(struct loop_io *io)
{
	struct mps_daemon *daemon = container_of(io, struct mps_daemon, death);
	enum mps_state state = daemon->state;
	int status = 0;

	/* A daemon that weir-mps or an earlier agent started is not our child. */
	bool ours = waitpid(daemon->pid, &status, WNOHANG) == daemon->pid;
	forget_process(daemon);
	if (!daemon->wanted) {
		log_info("MPS daemon of %s: ended", daemon->name);
		enter(daemon, MPS_ENDED);
		loop_timer_clear(&daemon->timer);
		return;
	}
	if (state == MPS_ENDING) {
		log_info("MPS daemon of %s: ended, starts again", daemon->name);
		start_later(daemon);
		return;
	}
	daemon->deaths++;
	if (state == MPS_STARTING && ours && WIFEXITED(status))
		note_refusal(daemon);
	if (state == MPS_UP && loop_now() - daemon->since > STEADY)
		daemon->pause = PAUSE_MIN;
	log_warning("MPS daemon of %s: died (%s %d); its clients failed; next start in %llu ms",
		    daemon->name, WIFSIGNALED(status) ? "signal" : "status",
		    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		    (unsigned long long)(daemon->pause / NS_PER_MS));
	start_later(daemon);
}

static int watch(struct mps_daemon *daemon, pid_t pid)
{
	daemon->process = process_open(pid);
	if (daemon->process < 0)
		return daemon->process;
	daemon->pid = pid;
	return loop_io_init(&daemon->death, daemon->mps->loop, daemon->process, EPOLLIN, died);
}

int mps_daemon_make_folders(const struct mps_daemon *daemon)
{
	return mps_folder_make(daemon->mps->config->dir, daemon->request.gpu, daemon->folder);
}

static bool for_several(const struct mps *mps)
{
	return mps->config->multi_user && !mps->single_user;
}

static int start_child(struct mps_daemon *daemon)
{
	struct mps *mps = daemon->mps;
	daemon->request.multi_user = for_several(mps);
	int r = mps_program_start(&mps->program, daemon->folder, &daemon->request);

	return r > 0 ? watch(daemon, r) : r;
}

/* weir-mps writes the process to the folder's file, where find_started() reads it. */
static int ask_supervisor(struct mps_daemon *daemon)
{
	unlink(mps_path(daemon->folder, "daemon").text);
	daemon->request.multi_user = for_several(daemon->mps);
	return mps_supervisor_ask(daemon->mps->config->dir, &daemon->request);
}

static void start(struct mps_daemon *daemon)
{
	struct mps *mps = daemon->mps;

	if (!mps_program_find(&mps->program, mps->config)) {
		if (!mps->complained)
			log_error("%s not found: GPUs of mode mps are time-sliced",
				  *mps->config->program ? mps->config->program
							: "nvidia-cuda-mps-control");
		mps->complained = true;
		daemon->pause = PAUSE_MAX;
		start_later(daemon);
		return;
	}
	mps->complained = false;
	int r = mps_daemon_make_folders(daemon);
	if (r == 0)
		r = mps->config->supervisor ? ask_supervisor(daemon) : start_child(daemon);
	if (r < 0) {
		log_limited(LOG_ERROR, 60, "MPS daemon of %s: %s: %s", daemon->name,
			    mps->config->supervisor ? "weir-mps" : daemon->folder, strerror(-r));
		start_later(daemon);
		return;
	}
	daemon->starts++;
	enter(daemon, MPS_STARTING);
	look_in(daemon, LOOK_SOON);
}

static void end_now(struct mps_daemon *daemon)
{
	enter(daemon, MPS_ENDING);
	if (kill(daemon->pid, SIGTERM) == 0)
		look_in(daemon, QUIT_SECONDS * NS_PER_S);
}

static void quit_answered(struct mps_question *question, const char *answer)
{
	struct mps_daemon *daemon = container_of(question, struct mps_daemon, question);

	(void)answer;
	look_in(daemon, QUIT_SECONDS * NS_PER_S);
}

static void ask(struct mps_daemon *daemon, const char *command, mps_answered_fn *answered)
{
	unsigned seconds = answered == quit_answered ? QUIT_SECONDS : MPS_ANSWER_SECONDS;

	if (mps_ask(&daemon->question, daemon->mps->loop, &daemon->mps->program, daemon->folder,
		    command, seconds, answered) < 0)
		look_in(daemon, period(daemon));
}

static void quit(struct mps_daemon *daemon)
{
	enter(daemon, MPS_ENDING);
	ask(daemon, "quit", quit_answered);
}

static void tell_looked(struct mps_daemon *daemon)
{
	if (is_of_level(daemon))
		daemon->mps->heard.looked(daemon->mps, daemon);
}

/* The daemon has no clients. */
static void note_empty(struct mps_daemon *daemon)
{
	daemon->n_clients = 0;
	tell_looked(daemon);
	if (daemon->state == MPS_DRAINING) {
		quit(daemon);
		return;
	}
	if (daemon->faulted && ++daemon->stranded >= STRANDED_MAX) {
		log_warning("MPS server of %s: does not recover without clients; restarting it",
			    daemon->name);
		end_now(daemon);
		return;
	}
	look_in(daemon, period(daemon));
}

static void clients_answered(struct mps_question *question, const char *answer)
{
	struct mps_daemon *daemon = container_of(question, struct mps_daemon, question);
	unsigned n = answer ? read_pids(answer, daemon->clients, MPS_CLIENTS_MAX) : 0;

	if (answer && n == 0) {
		note_empty(daemon);
		return;
	}
	if (answer) {
		daemon->n_clients = n;
		tell_looked(daemon);
	}
	daemon->stranded = 0;
	look_in(daemon, period(daemon));
}

static void note_status(struct mps_daemon *daemon, const char *answer)
{
	bool faulted = strncmp(answer, "FAULT", strlen("FAULT")) == 0;

	if (faulted && !daemon->faulted) {
		daemon->faults++;
		log_warning(
			"MPS server of %s: a client's fault ended the work of all clients; no new "
			"clients until these are gone",
			daemon->name);
	} else if (!faulted && daemon->faulted) {
		log_info("MPS server of %s: has recovered", daemon->name);
	}
	daemon->faulted = faulted;
}

static void status_answered(struct mps_question *question, const char *answer)
{
	struct mps_daemon *daemon = container_of(question, struct mps_daemon, question);
	char command[64];

	if (answer)
		note_status(daemon, answer);
	if (!daemon->faulted && daemon->state != MPS_DRAINING && !is_of_level(daemon)) {
		look_in(daemon, period(daemon));
		return;
	}
	snprintf(command, sizeof(command), "get_client_list %d", (int)daemon->servers[0]);
	ask(daemon, command, clients_answered);
}

static void came_up(struct mps_daemon *daemon)
{
	int r = mps_folder_show_clients(daemon->folder);

	if (r < 0) {
		log_limited(LOG_ERROR, 60, "MPS daemon of %s: %s/client: %s", daemon->name,
			    daemon->folder, strerror(-r));
		return;
	}

	log_info("MPS daemon of %s: answers, process %d", daemon->name, (int)daemon->pid);
	enter(daemon, MPS_UP);
	if (is_of_level(daemon))
		daemon->mps->heard.up(daemon->mps, daemon);
}

/* Restarts a daemon that never answered. One that was up may still serve its clients. */
static void note_silence(struct mps_daemon *daemon)
{
	if (daemon->state == MPS_STARTING && loop_now() - daemon->since > START_TIME) {
		log_warning("MPS daemon of %s: does not answer; restarting it", daemon->name);
		end_now(daemon);
		return;
	}
	if (daemon->state == MPS_UP && ++daemon->silent == SILENT_MAX) {
		log_warning("MPS daemon of %s: does not answer; no new containers for it",
			    daemon->name);
		enter(daemon, MPS_SILENT);
	}
	look_in(daemon, period(daemon));
}

static void servers_answered(struct mps_question *question, const char *answer)
{
	struct mps_daemon *daemon = container_of(question, struct mps_daemon, question);
	char command[64];

	if (!answer) {
		note_silence(daemon);
		return;
	}
	daemon->silent = 0;
	daemon->n_servers = read_pids(answer, daemon->servers, MPS_SERVERS_MAX);
	if (daemon->state == MPS_STARTING || daemon->state == MPS_SILENT)
		came_up(daemon);
	if (daemon->n_servers == 0) {
		daemon->faulted = false;
		note_empty(daemon);
		return;
	}
	snprintf(command, sizeof(command), "get_server_status %d", (int)daemon->servers[0]);
	ask(daemon, command, status_answered);
}

/* Looks for the daemon that weir-mps was asked to start. */
static void find_started(struct mps_daemon *daemon)
{
	pid_t pid = mps_daemon_read(daemon->folder);

	if ((pid > 0 && watch(daemon, pid) == 0) ||
	    (pid == 0 && loop_now() - daemon->since < START_TIME)) {
		look_in(daemon, LOOK_SOON);
		return;
	}
	if (pid == 0) {
		log_warning("MPS daemon of %s: weir-mps does not start it", daemon->name);
	} else {
		daemon->deaths++;
		note_refusal(daemon);
	}
	forget_process(daemon);
	if (daemon->wanted)
		start_later(daemon);
	else
		enter(daemon, MPS_ENDED);
}

static void due(struct loop_timer *timer)
{
	struct mps_daemon *daemon = container_of(timer, struct mps_daemon, timer);

	switch (daemon->state) {
	case MPS_ENDED:
		return;
	case MPS_WAITING:
		start(daemon);
		return;
	case MPS_ENDING:
		kill(daemon->pid, SIGKILL);
		return;
	default:
		if (!daemon->pid) {
			find_started(daemon);
			return;
		}
		mps_folder_trim_log(daemon->folder);
		ask(daemon, "get_server_list", servers_answered);
	}
}

void mps_daemon_want(struct mps_daemon *daemon, bool wanted)
{
	if (daemon->wanted == wanted && daemon->state != MPS_ENDED)
		return;
	daemon->wanted = wanted;
	if (daemon->state == MPS_WAITING && !wanted) {
		enter(daemon, MPS_ENDED);
		loop_timer_clear(&daemon->timer);
	} else if (daemon->state == MPS_ENDED && wanted) {
		daemon->pause = PAUSE_MIN;
		start(daemon);
	} else if (daemon->state == MPS_DRAINING && wanted) {
		enter(daemon, MPS_STARTING);
		look_in(daemon, 0);
	} else if ((daemon->pid || daemon->state == MPS_STARTING) && daemon->state != MPS_ENDING &&
		   !wanted) {
		log_info("MPS daemon of %s: ends with its last client", daemon->name);
		enter(daemon, MPS_DRAINING);
		look_in(daemon, 0);
	}
}

void mps_daemon_look_soon(struct mps_daemon *daemon)
{
	if (!daemon->question.run.pid && daemon->pid)
		look_in(daemon, LOOK_SOON);
}

int mps_open(const struct mps_daemon *daemon)
{
	struct mps_path path = mps_path(daemon->folder, "client/control");

	if (daemon->state == MPS_STARTING || daemon->state == MPS_ENDING)
		return -EAGAIN;
	if (daemon->state != MPS_UP)
		return -ENOENT;
	int fd = open(path.text, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int mps_daemon_init(struct mps_daemon *daemon)
{
	daemon->process = -1;
	daemon->pause = PAUSE_MIN;
	return loop_timer_init(&daemon->timer, daemon->mps->loop, due);
}

void mps_daemon_adopt(struct mps_daemon *daemon)
{
	pid_t pid = mps_daemon_read(daemon->folder);

	enter(daemon, MPS_ENDED);
	if (pid <= 0 || watch(daemon, pid) < 0)
		return;
	log_info("MPS daemon of %s: found running, process %d", daemon->name, (int)pid);
	enter(daemon, MPS_DRAINING);
	look_in(daemon, LOOK_SOON);
}

void mps_daemon_deinit(struct mps_daemon *daemon)
{
	mps_question_stop(&daemon->question);
	mps_work_forget(daemon);
	loop_io_deinit(&daemon->death);
	loop_timer_deinit(&daemon->timer);
	if (daemon->pid && !daemon->mps->config->keep) {
		mps_daemon_end(daemon->pid);
		forget_process(daemon);
		enter(daemon, MPS_ENDED);
	}
	closep(&daemon->process);
}
