#include "mps-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/process.h"

#include "weir/base.h"
#include "weir/log.h"

char folder[] = "/tmp/weir-mps-XXXXXX", program[PATH_MAX];
struct loop loop;
struct config config;
struct mps mps;

const char *path_of(const char *gpu, const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", config.mps.dir, gpu, name);
	return path;
}

bool exists(const char *gpu, const char *name)
{
	return access(path_of(gpu, name), F_OK) == 0;
}

void make(const char *gpu, const char *name)
{
	char command[PATH_MAX + 64];

	snprintf(command, sizeof(command), "mkdir -p %s/%s && touch %s", config.mps.dir, gpu,
		 path_of(gpu, name));
	assert_int_equal(system(command), 0);
}

static void set_up_config(void)
{
	assert_int_equal(config_load(&config, NULL, NULL, 0), 0);
	free(config.mps.dir);
	free(config.mps.program);
	assert_true(asprintf(&config.mps.dir, "%s/mps", folder) > 0);
	config.mps.program = strdup(program);
	config.mps.check = 20000000;
}

int mps_set_up(void **state)
{
	(void)state;
	set_up_config();
	assert_int_equal(loop_init(&loop), 0);
	return mps_init(&mps, &loop, &config.mps);
}

int mps_tear_down(void **state)
{
	char command[PATH_MAX];

	(void)state;
	config.mps.keep = false;
	mps_deinit(&mps);
	config_deinit(&config);
	loop_deinit(&loop);
	snprintf(command, sizeof(command), "rm -rf %s/mps", folder);
	return system(command);
}

struct mps_daemon *daemon_of(const char *gpu)
{
	struct mps_daemon *daemon = mps.daemons;

	while (daemon && strcmp(daemon->request.gpu, gpu) != 0)
		daemon = daemon->next;
	assert_non_null(daemon);
	return daemon;
}

struct mps_daemon *have_daemon(const char *gpu)
{
	mps_want(&mps, gpu, true);
	struct mps_daemon *daemon = daemon_of(gpu);
	AWAIT(daemon->state == MPS_UP);
	return daemon;
}

bool lives(pid_t pid)
{
	waitpid(pid, NULL, WNOHANG);
	return process_started(pid) != 0;
}

int make_folder(void **state)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);

	(void)state;
	program[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(program, '/');
	if (!slash)
		return -1;
	snprintf(slash, 32, "/../bin/sim-mps-control");
	log_set_level(LOG_ERROR);
	return mkdtemp(folder) ? 0 : -1;
}

int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}
