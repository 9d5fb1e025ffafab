#include "mps/mps-process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "config/config.h"
#include "common/process.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"

#define PROGRAM "nvidia-cuda-mps-control"
#define PREFIX  "/usr/local/nvidia/" /* the dynamic loader may not know a driver there */

#define QUIT_SECONDS 3
#define LEVEL_FOLDER "level-"

/* The part of a request that a weir-mps before 0.2.0 knows: it has no levels. */
#define REQUEST_OF_ALL offsetof(struct mps_request, level)

static const char *const places[] = {
	"/usr/bin",
	"/usr/local/bin",
	"/usr/local/nvidia/bin",
	"/run/nvidia/driver/usr/bin",
};

static bool is_there(const char *root, const char *path, int mode)
{
	char inside[2 * MPS_PATH_MAX];

	snprintf(inside, sizeof(inside), "%s%s", root, path);
	return access(inside, mode) == 0;
}

static bool is_program(const char *root, const char *path)
{
	return is_there(root, path, X_OK);
}

/* Beside the agent. In another root only the configuration can say where it is. */
static void find_preload(struct mps_program *out, const struct config_mps *config)
{
	static const char *const names[] = {"../lib/libweir-mps.so",
					    "../lib/weir/" WEIR_VERSION "/libweir-mps.so"};
	char own[MPS_PATH_MAX / 2];

	snprintf(out->preload, sizeof(out->preload), "%s", config->preload);
	if (*config->preload && is_there(out->root, out->preload, R_OK))
		return;
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	own[n > 0 ? n : 0] = '\0';
	const char *slash = strrchr(own, '/');
	for (size_t i = 0; slash && i < countof(names) && !*config->preload && !*config->root;
	     i++) {
		snprintf(out->preload, sizeof(out->preload), "%.*s/%s", (int)(slash - own), own,
			 names[i]);
		if (is_there("", out->preload, R_OK))
			return;
	}
	out->preload[0] = '\0';
}

bool mps_program_find(struct mps_program *out, const struct config_mps *config)
{
	out->root = config->root;
	find_preload(out, config);
	snprintf(out->path, sizeof(out->path), "%s", config->program);
	if (*config->program)
		return is_program(out->root, out->path);
	for (size_t i = 0; i < countof(places); i++) {
		snprintf(out->path, sizeof(out->path), "%s/" PROGRAM, places[i]);
		if (is_program(out->root, out->path))
			return true;
	}
	out->path[0] = '\0';
	return false;
}

/* Arguments and environment of the program. Of our environment it gets only the path of libraries.
 */
struct start {
	char *argv[4];
	char pipes[MPS_PATH_MAX + 64], logs[MPS_PATH_MAX + 64], device[96], libraries[1024];
	char preload[MPS_PATH_MAX + 64], socket[MPS_PATH_MAX + 64];
	char *environment[9];
};

/* @request: NULL: to ask the daemon. */
static void prepare(struct start *start, const struct mps_program *program, const char *folder,
		    const struct mps_request *request)
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"
			     "/usr/local/nvidia/bin";
	const char *libraries = *program->root ? NULL : getenv("LD_LIBRARY_PATH");
	bool beside = strncmp(program->path, PREFIX, strlen(PREFIX)) == 0;
	size_t n = 0;

	*start = (struct start){.argv = {(char *)program->path}};
	snprintf(start->pipes, sizeof(start->pipes), "CUDA_MPS_PIPE_DIRECTORY=%s/pipe", folder);
	snprintf(start->logs, sizeof(start->logs), "CUDA_MPS_LOG_DIRECTORY=%s", folder);
	start->environment[n++] = path;
	start->environment[n++] = start->pipes;
	start->environment[n++] = start->logs;
	if (request) {
		snprintf(start->device, sizeof(start->device), "CUDA_VISIBLE_DEVICES=%s",
			 request->gpu);
		start->environment[n++] = start->device;
	}
	if (request && request->level != MPS_ALL && *program->preload) {
		snprintf(start->preload, sizeof(start->preload), "LD_PRELOAD=%s", program->preload);
		snprintf(start->socket, sizeof(start->socket), MPS_SOCKET_VARIABLE "=%s/agent.sock",
			 folder);
		start->environment[n++] = start->preload;
		start->environment[n++] = start->socket;
	}
	if (libraries || beside) {
		snprintf(start->libraries, sizeof(start->libraries), "LD_LIBRARY_PATH=%s%s%s",
			 beside ? PREFIX "lib64" : "", beside && libraries ? ":" : "",
			 libraries ? libraries : "");
		start->environment[n++] = start->libraries;
	}
}

/* In the child after fork(): only async-signal-safe functions. */
static void become(const struct start *start, const struct mps_program *program, int input,
		   int output)
{
	sigset_t none;

	setsid();
	if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
		_exit(127);
	syscall(SYS_close_range, 3, ~0u, 0);
	if (*program->root && (chroot(program->root) < 0 || chdir("/") < 0))
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(program->path, start->argv, start->environment);
	_exit(127);
}

static pid_t run(const struct start *start, const struct mps_program *program, int input,
		 int output)
{
	pid_t pid = fork();

	if (pid == 0)
		become(start, program, input, output);
	return pid < 0 ? -errno : pid;
}

/* Replaces the file @name. What is there is not opened: a process may have a lease on it. */
static int new_file(const char *folder, const char *name, int flags)
{
	struct mps_path path = mps_path(folder, name);

	unlink(path.text);
	return file_open(AT_FDCWD, path.text, O_WRONLY | O_CREAT | O_EXCL | flags);
}

/* NVIDIA's program opens its logs itself, and would wait for a lease. It gets new ones; those of
 * the daemon before stay as NAME.old. */
static void put_aside(const char *folder, const char *name)
{
	struct mps_path path = mps_path(folder, name);
	char old[sizeof(path) + sizeof(".old")];

	snprintf(old, sizeof(old), "%s.old", path.text);
	rename(path.text, old);
}

static void write_daemon(const char *folder, pid_t pid)
{
	cleanup(closep) int fd = new_file(folder, "daemon", 0);

	if (fd < 0 ||
	    dprintf(fd, "%d %llu\n", (int)pid, (unsigned long long)process_started(pid)) < 0)
		log_warning("%s/daemon: %s; the next agent will not know this daemon", folder,
			    strerror(fd < 0 ? -fd : errno));
}

pid_t mps_program_start(const struct mps_program *program, const char *folder,
			const struct mps_request *request)
{
	char foreground[] = "-f", several[] = "-multiuser-server";
	struct start start;

	prepare(&start, program, folder, request);
	start.argv[1] = foreground;
	start.argv[2] = request->multi_user ? several : NULL;
	put_aside(folder, "control.log");
	put_aside(folder, "server.log");
	cleanup(closep) int log = new_file(folder, "log", O_APPEND);
	cleanup(closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || log < 0)
		return log < 0 ? log : -errno;
	pid_t pid = run(&start, program, null, log);
	if (pid > 0)
		write_daemon(folder, pid);
	return pid;
}

void mps_question_stop(struct mps_question *question)
{
	program_run_stop(&question->run);
}

static void answered(struct program_run *run, bool success, const char *output)
{
	struct mps_question *question = container_of(run, struct mps_question, run);

	question->answered(question, success ? output : NULL);
}

/* A file that holds @command as a line, to be read. Or a negative errno. */
static int input_of(const char *command)
{
	cleanup(closep) int input = memfd_create("weir-mps-command", MFD_CLOEXEC);

	if (input < 0)
		return -errno;
	if (dprintf(input, "%s\n", command) < 0 || lseek(input, 0, SEEK_SET) < 0)
		return -EIO;
	return take_fd(input);
}

int mps_ask(struct mps_question *question, struct loop *loop, const struct mps_program *program,
	    const char *folder, const char *command, unsigned seconds, mps_answered_fn *callback)
{
	struct start start;
	cleanup(closep) int input = input_of(command);
	int output = memfd_create("weir-mps-answer", MFD_CLOEXEC);
	pid_t pid = input < 0 ? input : -errno;

	mps_question_stop(question);
	question->answered = callback;
	prepare(&start, program, folder, NULL);
	if (input >= 0 && output >= 0)
		pid = run(&start, program, input, output);
	int r = program_run_watch(&question->run, loop, pid, output, seconds, answered);
	return r < 0 ? error_origin(r) : 0;
}

struct mps_path mps_path(const char *folder, const char *name)
{
	struct mps_path path;

	snprintf(path.text, sizeof(path.text), "%s/%s", folder, name);
	return path;
}

void mps_folder(char out[MPS_PATH_MAX], const char *dir, const struct mps_request *request)
{
	if (request->level == MPS_ALL)
		snprintf(out, MPS_PATH_MAX, "%s/%s", dir, request->gpu);
	else
		snprintf(out, MPS_PATH_MAX, "%s/%s/" LEVEL_FOLDER "%u", dir, request->gpu,
			 request->level);
}

pid_t mps_daemon_read(const char *folder)
{
	unsigned long long start = 0;
	char text[64];
	int pid = 0;

	file_read(AT_FDCWD, mps_path(folder, "daemon").text, text, sizeof(text));
	/* A half file is being written. */
	if (sscanf(text, "%d %llu", &pid, &start) != 2 || pid <= 0 || !start)
		return 0;
	return process_started(pid) == start ? pid : -ESRCH;
}

void mps_daemon_end(pid_t pid)
{
	if (kill(pid, SIGTERM) < 0)
		return;
	for (unsigned i = 0; i < QUIT_SECONDS * 50; i++) {
		waitpid(pid, NULL, WNOHANG);
		if (kill(pid, 0) < 0)
			return;
		usleep(20000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#define SOCKET "keeper.sock" /* a deprecated word that weir-mps of 0.1.0 knows */

static int address_of(struct sockaddr_un *out, const char *dir)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(out->sun_path, sizeof(out->sun_path), "%s/" SOCKET, dir);

	return n < (int)sizeof(out->sun_path) ? 0 : -ENAMETOOLONG;
}

int mps_supervisor_ask(const char *dir, const struct mps_request *request)
{
	size_t size = request->level == MPS_ALL ? REQUEST_OF_ALL : sizeof(*request);
	struct sockaddr_un address;
	int r = address_of(&address, dir);

	if (r < 0)
		return error_origin(r);
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_origin(-errno);
	/* weir-mps may not run yet, so this is no error_origin(). */
	ssize_t n = sendto(fd, request, size, 0, (struct sockaddr *)&address, sizeof(address));
	return n < 0 ? -errno : 0;
}

int mps_supervisor_listen(const char *dir)
{
	struct sockaddr_un address;
	int r = address_of(&address, dir);

	if (r < 0)
		return error_origin(r);
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_origin(-errno);
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_origin(-errno);
	unlink(address.sun_path);
	/* bind() makes the file with the socket's mode. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return error_origin(-errno);
	return take_fd(fd);
}

bool mps_supervisor_next(int fd, struct mps_request *out)
{
	struct mps_request request;
	uint8_t uuid[16];
	ssize_t n;

	while ((n = recv(fd, &request, sizeof(request), MSG_TRUNC)) >= 0 || errno == EINTR) {
		if (n == REQUEST_OF_ALL)
			request.level = MPS_ALL;
		else if (n != sizeof(request) || request.level >= WEIR_LEVELS)
			continue;
		if (request.gpu[sizeof(request.gpu) - 1] != '\0' ||
		    !gpu_id_parse(request.gpu, uuid))
			continue;
		*out = request;
		return true;
	}
	return false;
}
