#include "daemon/pipes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/hash.h"
#include "common/process.h"
#include "daemon/gpu-socket.h"
#include "kubernetes/container.h"
#include "kubernetes/events.h"
#include "kubernetes/pods.h"

#include "weir/base.h"
#include "weir/log.h"
#include "weir/protocol.h"

/* A process that was given a server, or that is in one. */
struct mps_process {
	int pid;
	uint64_t started; /* by /proc/PID/stat, because pids are used again */
	uint8_t given;    /* bit l: the server of level l */
	uint8_t last;     /* the level of the last one */
	uint8_t seen;     /* bit l: it was in that server, and not given it, at the last look */
	uint8_t reported; /* the same */
	struct mps_process *next_dead;
	UT_hash_handle hh;
};

static bool has_levels(const struct pipes *pipes, const struct gpu *gpu)
{
	return gpu_settings(pipes->config, gpu).mode == GPU_MODE_MPS_PER_LEVEL;
}

struct gpu *pipes_gpu(const struct pipes *pipes, const struct gpu *only, const uint8_t uuid[16])
{
	static const uint8_t any[16];
	struct gpu *found = NULL;

	for (struct gpu *gpu = pipes->gpus->all; gpu; gpu = gpu->hh.next) {
		bool asked = memcmp(uuid, any, 16) == 0 || memcmp(uuid, gpu->uuid, 16) == 0;
		if (!asked || (only && gpu != only) || !has_levels(pipes, gpu))
			continue;
		if (found)
			return NULL;
		found = gpu;
	}
	return found;
}

/* Processes */

static void forget_dead(struct pipes *pipes)
{
	struct mps_process *process, *next, *dead = NULL;

	pipes->pruned = loop_now();
	HASH_ITER (hh, pipes->all, process, next) {
		if (process_started(process->pid) == process->started)
			continue;
		HASH_DEL(pipes->all, process);
		process->next_dead = dead;
		dead = process;
	}
	for (; dead; dead = next) {
		next = dead->next_dead;
		free(dead);
	}
}

static struct mps_process *find(const struct pipes *pipes, pid_t pid)
{
	struct mps_process *process;

	HASH_FIND_INT(pipes->all, &pid, process);
	return process;
}

/* Its entry, made if it is new. NULL: the process is dead, or there are too many. */
static struct mps_process *find_or_add(struct pipes *pipes, pid_t pid)
{
	struct mps_process *process = find(pipes, pid);
	uint64_t started = process_started(pid);

	if (!started)
		return NULL;
	if (!process) {
		if (HASH_COUNT(pipes->all) >= 2 * (size_t)pipes->config->clients)
			forget_dead(pipes);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the dead are not in it any more */
		if (HASH_COUNT(pipes->all) >= 2 * (size_t)pipes->config->clients)
			return NULL;
		process = calloc(1, sizeof(*process));
		if (!process)
			return NULL;
		process->pid = pid;
		process->started = started;
		HASH_ADD_INT(pipes->all, pid, process);
	}
	if (process->started != started) {
		process->started = started;
		process->given = process->seen = process->reported = 0;
	}
	return process;
}

/* Answers */

static int send_answer(int socket, enum weir_pipes_status status, uint8_t level, const int *fd)
{
	struct weir_pipes_answer message = {.status = status, .level = level};

	weir_header_init(&message.header, WEIR_PIPES_ANSWER, sizeof(message));
	return weir_message_send(socket, &message, sizeof(message), fd, fd ? 1 : 0);
}

bool pipes_ready(struct pipes *pipes, struct gpu *gpu, uint8_t level)
{
	const struct mps_daemon *daemon = mps_want_level(pipes->mps, gpu, level);
	int fd = daemon ? mps_open(daemon) : -ENOMEM;

	closep(&fd);
	return fd != -EAGAIN;
}

int pipes_answer(struct pipes *pipes, int socket, struct gpu *gpu, uint8_t level, pid_t pid)
{
	const struct mps_daemon *daemon = gpu ? mps_want_level(pipes->mps, gpu, level) : NULL;
	cleanup(closep) int fd = daemon ? mps_open(daemon) : -ENOENT;
	struct mps_process *process = fd < 0 ? NULL : find_or_add(pipes, pid);

	if (!process) {
		if (gpu)
			log_limited(LOG_WARNING, 60,
				    "no MPS server of %s, level %u for process %d: it is "
				    "time-sliced",
				    gpu->id, level, (int)pid);
		return send_answer(socket, WEIR_PIPES_NONE, level, NULL);
	}
	process->given |= (uint8_t)(1u << level);
	process->last = level;
	return send_answer(socket, WEIR_PIPES_OK, level, &fd);
}

int pipes_answer_later(int socket)
{
	return send_answer(socket, WEIR_PIPES_LATER, 0, NULL);
}

void pipes_move(struct pipes *pipes, const struct client *client)
{
	const struct mps_process *process = find(pipes, client->pid);

	if (!client->takes_pipes || !process || !process->given || process->last == client->level ||
	    !has_levels(pipes, client->gpu) || !pipes_ready(pipes, client->gpu, client->level))
		return;
	/* If its socket is full, it stays in the server that it has. */
	pipes_answer(pipes, client->socket, client->gpu, client->level, client->pid);
}

void pipes_daemon_up(struct pipes *pipes, const struct mps_daemon *daemon)
{
	const struct client *client = daemon->gpu ? daemon->gpu->clients : NULL;

	for (; client; client = client->gpu_next)
		if (client->level == daemon->request.level)
			pipes_move(pipes, client);
}

/* Clients in the server of another level */

static void report(struct pipes *pipes, const struct mps_process *process,
		   struct mps_daemon *daemon)
{
	struct container_identity identity = {0};
	const struct pod *pod = NULL;

	daemon->foreign++;
	if (container_identify(&identity, process->pid) == 0)
		pod = pods_of(pipes->pods, &identity);
	log_limited(LOG_WARNING, 1,
		    "process %d (namespace '%s', pod '%s') is in the MPS server of %s, which it "
		    "was not given",
		    process->pid, pod ? pod->namespace_ : "", pod ? pod->name : "", daemon->name);
	if (pod)
		events_tell(pipes->events, pod, EVENT_WARNING, "ForeignMPSServer",
			    "process %d is in the MPS server of %s, which is not its level's",
			    process->pid, daemon->name);
}

/* A client that came before the agent's restart was given its level's server then. */
static bool has_level(const struct gpu *gpu, pid_t pid, uint8_t level)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client->pid == pid && client->level == level)
			return true;
	return false;
}

static void judge(struct pipes *pipes, struct mps_daemon *daemon, pid_t pid)
{
	uint8_t level = daemon->request.level, bit = (uint8_t)(1u << level);
	struct mps_process *process = find_or_add(pipes, pid);

	if (!process || process->given & bit)
		return;
	if (has_level(daemon->gpu, pid, level)) {
		process->given |= bit;
		process->last = level;
		return;
	}
	/* At two looks: a client may be about to say who it is. */
	if (process->seen & bit && !(process->reported & bit)) {
		process->reported |= bit;
		report(pipes, process, daemon);
	}
	process->seen |= bit;
}

void pipes_daemon_looked(struct pipes *pipes, struct mps_daemon *daemon)
{
	if (!daemon->gpu)
		return;
	for (unsigned i = 0; i < daemon->n_clients; i++)
		judge(pipes, daemon, daemon->clients[i]);
	if (loop_now() - pipes->pruned >= PIPES_PRUNE_NS)
		forget_dead(pipes);
}

/* Links */

static int make_folder(const char *path)
{
	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	/* Despite the umask. */
	return chmod(path, 0755) < 0 ? -errno : 0;
}

static int make_links(const char *dir)
{
	char path[PATH_MAX], target[32];
	int r;

	snprintf(path, sizeof(path), "%s/" WEIR_PIPES_NAME, dir);
	r = make_folder(path);
	for (int i = WEIR_PIPES_FD; r == 0 && i < WEIR_PIPES_FD + WEIR_PIPES_NUMBERS; i++) {
		snprintf(path, sizeof(path), "%s/" WEIR_PIPES_NAME "/%d", dir, i);
		r = make_folder(path);
		snprintf(path, sizeof(path), "%s/" WEIR_PIPES_NAME "/%d/control", dir, i);
		snprintf(target, sizeof(target), "/proc/self/fd/%d", i);
		if (r == 0 && symlink(target, path) < 0 && errno != EEXIST)
			r = -errno;
	}
	return r;
}

static int remove_links(const char *dir)
{
	char path[PATH_MAX];

	for (int i = WEIR_PIPES_FD; i < WEIR_PIPES_FD + WEIR_PIPES_NUMBERS; i++) {
		snprintf(path, sizeof(path), "%s/" WEIR_PIPES_NAME "/%d/control", dir, i);
		unlink(path);
		*strrchr(path, '/') = '\0';
		rmdir(path);
	}
	snprintf(path, sizeof(path), "%s/" WEIR_PIPES_NAME, dir);
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

static bool wanted(const struct pipes *pipes)
{
	if (pipes->config->gpu.mode == GPU_MODE_MPS_PER_LEVEL)
		return true;
	for (const struct gpu *gpu = pipes->gpus->all; gpu; gpu = gpu->hh.next)
		if (has_levels(pipes, gpu))
			return true;
	return false;
}

void pipes_link(struct pipes *pipes)
{
	const struct gpu_sockets *sockets = pipes->sockets;
	bool link = wanted(pipes);
	char dir[PATH_MAX];

	/* An earlier agent may have left them. */
	int r = link ? make_links(sockets->dir) : remove_links(sockets->dir);
	for (unsigned i = 0; r == 0 && i < sockets->n; i++) {
		snprintf(dir, sizeof(dir), "%s/%s", sockets->dir, sockets->all[i].gpu->id);
		r = link ? make_links(dir) : remove_links(dir);
	}
	if (r < 0)
		log_error("%s/" WEIR_PIPES_NAME ": %s", sockets->dir, strerror(-r));
}

void pipes_deinit(struct pipes *pipes)
{
	hash_release(pipes->all, free);
}
