#include "pipes-fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fake first;
struct gpu *gpu;
char program[PATH_MAX];

/* The driver. */

_Atomic uint64_t driver_slice;
_Atomic bool driver_stopped;

bool __wrap_channel_group_is_device(int fd);
bool __wrap_channel_group_is_device(int fd)
{
	return fd >= 0;
}

int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us);
int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us)
{
	(void)fd, (void)group;
	atomic_store(&driver_slice, us);
	return 0;
}

int __wrap_channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us);
int __wrap_channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us)
{
	(void)fd, (void)group;
	*us = atomic_load(&driver_slice);
	return 0;
}

int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stop);
int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stop)
{
	(void)fd, (void)group;
	atomic_store(&driver_stopped, stop);
	return 0;
}

int __wrap_channel_group_gpu(int fd, const struct channel_group *group, uint8_t uuid[16]);
int __wrap_channel_group_gpu(int fd, const struct channel_group *group, uint8_t uuid[16])
{
	(void)fd, (void)group;
	memcpy(uuid, gpu->uuid, 16);
	return 0;
}

/* The daemons. */

const char *path_of(unsigned level, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/mps/%s/level-%u/%s", rig_folder, gpu->id, level, name);
	return path;
}

void tell(unsigned level, const char *command, int pid)
{
	char line[2 * PATH_MAX + 256];

	snprintf(line, sizeof(line), "echo '%s %d' | CUDA_MPS_PIPE_DIRECTORY=%s %s", command, pid,
		 path_of(level, "pipe"), program);
	assert_int_equal(system(line), 0);
}

struct mps_daemon *daemon_of(uint8_t level)
{
	for (struct mps_daemon *daemon = agent.mps.daemons; daemon; daemon = daemon->next)
		if (daemon->request.level == level)
			return daemon;
	return NULL;
}

/* The question of a process. */

int ask_with(uid_t uid, const uint8_t uuid[16])
{
	struct weir_pipes question = {0};
	int fd = fake_connect();

	next_identity.uid = uid;
	weir_header_init(&question.header, WEIR_PIPES, sizeof(question));
	memcpy(question.gpu, uuid, 16);
	assert_int_equal(weir_message_send(fd, &question, sizeof(question), NULL, 0), 0);
	return fd;
}

int ask(uid_t uid)
{
	return ask_with(uid, gpu->uuid);
}

enum weir_pipes_status answer(int fd, int *pipe, bool *later)
{
	union weir_message message = {0};
	int fds[WEIR_FDS_MAX], r = -EAGAIN;

	*later = false;
	*pipe = -1;
	for (;;) {
		rig_wait((r = fake_receive(fd, &message, fds)) != -EAGAIN);
		assert_int_equal(r, 0);
		assert_int_equal(message.header.type, WEIR_PIPES_ANSWER);
		if (message.pipes_answer.status != WEIR_PIPES_LATER)
			break;
		*later = true;
	}
	if (message.pipes_answer.status == WEIR_PIPES_OK)
		*pipe = fds[0];
	return message.pipes_answer.status;
}

bool is_socket_of(int pipe, unsigned level)
{
	struct stat given, own;

	return fstat(pipe, &given) == 0 && stat(path_of(level, "pipe/control"), &own) == 0 &&
	       S_ISSOCK(given.st_mode) && given.st_ino == own.st_ino && given.st_dev == own.st_dev;
}

bool join(uid_t uid, unsigned level)
{
	int pipe, fd = ask(uid);
	bool later;

	assert_int_equal(answer(fd, &pipe, &later), WEIR_PIPES_OK);
	assert_true(is_socket_of(pipe, level));
	close(pipe);
	close(fd);
	rig_pump();
	return later;
}

int pipes_set_up(void **state)
{
	struct config_mps *mps = &agent.config.mps;

	rig_set_up(state);
	agent.config.rules[0].level = 0;
	agent.config.rules[1].level = 1;
	agent.config.rules[2].level = 2;
	free(mps->program);
	free(mps->dir);
	mps->program = strdup(program);
	assert_true(asprintf(&mps->dir, "%s/mps", rig_folder) > 0);
	mps->check = 20 * NS_PER_MS;
	mps->keep = true;
	agent.config.gpu.mode = GPU_MODE_MPS_PER_LEVEL;
	driver_slice = 0;
	driver_stopped = false;
	pipes_link(&agent.pipes);
	first = fake_join(NORMAL);
	gpu = agent.gpus.all;
	self_test_off(&gpu->self_test, "the test's driver works");
	gpu->self_test.state = SELF_TEST_WORKS;
	return 0;
}

int pipes_tear_down(void **state)
{
	char command[128];

	agent.config.mps.keep = false;
	rig_tear_down(state);
	snprintf(command, sizeof(command), "rm -rf %s/mps %s/mps-pipes", rig_folder, rig_folder);
	return system(command);
}

int pipes_find_program(void **state)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);

	program[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(program, '/');
	if (!slash)
		return -1;
	snprintf(slash, 32, "/../bin/sim-mps-control");
	return rig_make_folder(state);
}
