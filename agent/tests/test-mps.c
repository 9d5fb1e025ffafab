/* MPS daemons: how the agent starts, watches and ends them. */
#include "mps-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/process.h"

#include "weir/base.h"

static void tell(const char *gpu, const char *command)
{
	char line[2 * PATH_MAX + 256];

	snprintf(line, sizeof(line), "echo '%s' | CUDA_MPS_PIPE_DIRECTORY=%s %s", command,
		 path_of(gpu, "pipe"), program);
	assert_int_equal(system(line), 0);
}

/* Containers have the socket of this daemon, not of the previous one, and no other. */
static bool clients_have(const char *gpu)
{
	struct stat shown, own;
	struct dirent **entries;
	int n = scandir(path_of(gpu, "client"), &entries, NULL, NULL);

	for (int i = 0; i < n; i++)
		free(entries[i]);
	if (n >= 0)
		free(entries);
	return n == 3 && stat(path_of(gpu, "client/control"), &shown) == 0 &&
	       stat(path_of(gpu, "pipe/control"), &own) == 0 && shown.st_ino == own.st_ino;
}

static void starts_and_is_ready(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);
	struct stat info;

	(void)state;
	assert_true(exists(GPU_A, "ready"));
	assert_true(exists(GPU_A, "pipe/control"));
	assert_int_equal(stat(path_of(GPU_A, "client"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0755);
	assert_int_equal(stat(path_of(GPU_A, "pipe"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0755);
	assert_true(clients_have(GPU_A));
	assert_int_equal(daemon->starts, 1);
	assert_true(mps_complete(&mps));
}

/* A blocking open would wait for 45 s; alarm() ends this test after 30 s. */
static void leases_delay_no_start(void **state)
{
	static const char *const names[] = {"log", "control.log", "server.log", "daemon", "ready"};
	int fds[countof(names)];

	(void)state;
	signal(SIGIO, SIG_IGN);
	for (size_t i = 0; i < countof(names); i++) {
		make(GPU_A, names[i]);
		fds[i] = open(path_of(GPU_A, names[i]), O_RDONLY | O_CLOEXEC);
		assert_int_equal(fcntl(fds[i], F_SETLEASE, F_WRLCK), 0);
	}
	alarm(30);
	struct mps_daemon *daemon = have_daemon(GPU_A);
	alarm(0);
	assert_int_equal(daemon->starts, 1);
	assert_int_equal(mps_daemon_read(daemon->folder), daemon->pid);
	/* NVIDIA's program makes new ones. */
	assert_false(exists(GPU_A, "control.log"));
	assert_true(exists(GPU_A, "control.log.old"));
	assert_false(exists(GPU_A, "server.log"));
	for (size_t i = 0; i < countof(names); i++)
		close(fds[i]);
}

static void each_gpu_has_its_own(void **state)
{
	struct mps_daemon *a = have_daemon(GPU_A), *b = have_daemon(GPU_B);

	(void)state;
	assert_int_not_equal(a->pid, b->pid);
	tell(GPU_A, "sim_enter 1");
	mps_want(&mps, GPU_B, false);
	AWAIT(b->state == MPS_ENDED);
	assert_int_equal(a->state, MPS_UP);
}

static void a_killed_one_is_started_again(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);
	pid_t first = daemon->pid;

	(void)state;
	kill(first, SIGKILL);
	AWAIT(daemon->state == MPS_WAITING);
	assert_false(exists(GPU_A, "ready"));
	assert_false(mps_complete(&mps));
	AWAIT(daemon->state == MPS_UP);
	assert_int_not_equal(daemon->pid, first);
	assert_int_equal(daemon->deaths, 1);
	assert_true(exists(GPU_A, "ready"));
	assert_true(clients_have(GPU_A));
}

static void pauses_grow(void **state)
{
	struct mps_daemon *daemon;

	(void)state;
	free(config.mps.program);
	config.mps.program = strdup("/bin/false");
	mps_want(&mps, GPU_A, true);
	daemon = daemon_of(GPU_A);
	AWAIT(daemon->starts == 4);
	assert_true(daemon->pause >= 400000000);
	assert_false(exists(GPU_A, "ready"));
}

static void goes_on_without_the_agent(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);
	pid_t pid = daemon->pid;

	(void)state;
	tell(GPU_A, "sim_enter 1");
	mps_deinit(&mps);
	assert_true(lives(pid));
	assert_int_equal(mps_init(&mps, &loop, &config.mps), 0);
	daemon = have_daemon(GPU_A);
	assert_int_equal(daemon->pid, pid);
	assert_int_equal(daemon->starts, 0);
	/* The daemon that was found is watched, too. */
	kill(pid, SIGKILL);
	AWAIT(daemon->starts == 1 && daemon->state == MPS_UP);
}

static void ends_with_the_agent_without_keep(void **state)
{
	pid_t pid = have_daemon(GPU_A)->pid;

	(void)state;
	config.mps.keep = false;
	mps_deinit(&mps);
	assert_false(lives(pid));
	assert_false(exists(GPU_A, "ready"));
	assert_false(exists(GPU_A, "daemon"));
}

static void an_unwanted_one_is_found(void **state)
{
	pid_t pid = have_daemon(GPU_A)->pid;

	(void)state;
	mps_deinit(&mps);
	assert_int_equal(mps_init(&mps, &loop, &config.mps), 0);
	assert_false(exists(GPU_A, "ready"));
	AWAIT(!lives(pid) && daemon_of(GPU_A)->state == MPS_ENDED);
}

static void a_foreign_process_is_left_alone(void **state)
{
	(void)state;
	make(GPU_A, "daemon");
	FILE *file = fopen(path_of(GPU_A, "daemon"), "we");
	fprintf(file, "%d 12345\n", (int)getpid());
	fclose(file);
	mps_deinit(&mps);
	assert_int_equal(mps_init(&mps, &loop, &config.mps), 0);
	assert_int_equal(daemon_of(GPU_A)->pid, 0);
}

static void clients_may_finish(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);

	(void)state;
	tell(GPU_A, "sim_enter 1");
	mps_want(&mps, GPU_A, false);
	assert_false(exists(GPU_A, "ready"));
	for (int i = 0; i < 10; i++)
		loop_step(&loop, 50);
	assert_int_equal(daemon->state, MPS_DRAINING);
	assert_true(lives(daemon->pid));
	tell(GPU_A, "sim_leave 1");
	AWAIT(daemon->state == MPS_ENDED);
	assert_int_equal(daemon->pid, 0);
}

/* The stand-in's clients without a process leave when their work is ended. */
static void the_work_of_a_client_is_ended(void **state)
{
	static const struct gpu gpu = {.id = GPU_A}, other = {.id = GPU_B};
	struct mps_daemon *daemon = have_daemon(GPU_A);

	(void)state;
	assert_int_equal(mps_end_work(&mps, &gpu, 1), MPS_NOT_SERVED);
	tell(GPU_A, "sim_enter 1");
	tell(GPU_A, "sim_enter 2");
	AWAIT(daemon->n_servers == 1);
	mps_want(&mps, GPU_A, false);
	assert_int_equal(mps_end_work(&mps, &other, 1), MPS_NOT_SERVED);
	assert_int_equal(mps_end_work(&mps, &gpu, 1), MPS_ENDS_WORK);
	assert_int_equal(mps_end_work(&mps, &gpu, 2), MPS_ENDS_WORK);
	AWAIT(mps_end_work(&mps, &gpu, 1) == MPS_ENDED_WORK);
	for (int i = 0; i < 10; i++)
		loop_step(&loop, 50);
	assert_int_equal(daemon->state, MPS_DRAINING);
	/* The daemon has no clients then and ends, perhaps before the server's answer is read. */
	AWAIT(mps_end_work(&mps, &gpu, 2) != MPS_ENDS_WORK);
	AWAIT(daemon->state == MPS_ENDED);
	assert_int_equal(mps_end_work(&mps, &gpu, 2), MPS_NOT_SERVED);
}

/* A daemon that does not answer delays the end for a moment, and one that dies does not. */
static void work_of_a_silent_daemon_counts_as_ended(void **state)
{
	static const struct gpu gpu = {.id = GPU_A};
	struct mps_daemon *daemon = have_daemon(GPU_A);

	(void)state;
	tell(GPU_A, "sim_enter 1");
	AWAIT(daemon->n_servers == 1);
	make(GPU_A, "sim-mute");
	AWAIT(mps_end_work(&mps, &gpu, 1) == MPS_ENDED_WORK);
	unlink(path_of(GPU_A, "sim-mute"));
	AWAIT(daemon->state == MPS_UP && daemon->n_servers == 1);
	assert_int_equal(mps_end_work(&mps, &gpu, 2), MPS_ENDS_WORK);
	kill(daemon->pid, SIGKILL);
	AWAIT(daemon->state == MPS_WAITING);
	assert_int_equal(mps_end_work(&mps, &gpu, 1), MPS_NOT_SERVED);
}

static void may_be_wanted_again(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);
	pid_t pid = daemon->pid;

	(void)state;
	tell(GPU_A, "sim_enter 1");
	mps_want(&mps, GPU_A, false);
	mps_want(&mps, GPU_A, true);
	AWAIT(daemon->state == MPS_UP);
	assert_int_equal(daemon->pid, pid);
	tell(GPU_A, "sim_leave 1");
	mps_want(&mps, GPU_A, false);
	AWAIT(daemon->state == MPS_ENDED);
	mps_want(&mps, GPU_A, true);
	AWAIT(daemon->state == MPS_UP);
}

static void a_fault_is_seen_and_passes(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);

	(void)state;
	tell(GPU_A, "sim_enter 1");
	tell(GPU_A, "sim_fault");
	AWAIT(daemon->faulted);
	assert_int_equal(daemon->faults, 1);
	tell(GPU_A, "sim_leave 1");
	AWAIT(!daemon->faulted);
	assert_int_equal(daemon->starts, 1);
}

static void a_server_that_stays_in_fault_is_replaced(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);

	(void)state;
	make(GPU_A, "sim-stuck");
	tell(GPU_A, "sim_enter 1");
	tell(GPU_A, "sim_fault");
	AWAIT(daemon->faulted);
	tell(GPU_A, "sim_leave 1");
	AWAIT(daemon->starts == 2 && daemon->state == MPS_UP);
	assert_false(daemon->faulted);
	assert_int_equal(daemon->deaths, 0);
}

static void one_that_is_silent_is_not_ended(void **state)
{
	struct mps_daemon *daemon = have_daemon(GPU_A);
	pid_t pid = daemon->pid;

	(void)state;
	make(GPU_A, "sim-mute");
	AWAIT(daemon->state == MPS_SILENT);
	assert_false(exists(GPU_A, "ready"));
	unlink(path_of(GPU_A, "sim-mute"));
	AWAIT(daemon->state == MPS_UP);
	assert_true(exists(GPU_A, "ready"));
	assert_int_equal(daemon->pid, pid);
}

static void an_old_program_serves_one_user(void **state)
{
	struct mps_daemon *daemon;

	(void)state;
	make(GPU_A, "sim-single-user");
	daemon = have_daemon(GPU_A);
	assert_true(mps.single_user);
	assert_int_equal(daemon->starts, 2);
}

static void a_missing_program_is_no_error(void **state)
{
	struct mps_daemon *daemon;

	(void)state;
	free(config.mps.program);
	config.mps.program = strdup("/nowhere/nvidia-cuda-mps-control");
	mps_want(&mps, GPU_A, true);
	daemon = daemon_of(GPU_A);
	assert_int_equal(daemon->state, MPS_WAITING);
	assert_false(mps_complete(&mps));
	mps_want(&mps, GPU_A, false);
	assert_int_equal(daemon->state, MPS_ENDED);
	assert_true(mps_complete(&mps));
}

static char *metrics(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	mps_metrics_write(out, &mps);
	fclose(out);
	return text;
}

static void has_metrics(void **state)
{
	(void)state;
	have_daemon(GPU_A);
	have_daemon(GPU_B);
	char *text = metrics();
	assert_non_null(strstr(text, "weir_mps_wanted{gpu=\"" GPU_A "\"} 1\n"));
	assert_non_null(strstr(text, "weir_mps_up{gpu=\"" GPU_A "\"} 1\n"));
	assert_non_null(strstr(text, "weir_mps_up{gpu=\"" GPU_B "\"} 1\n"));
	assert_non_null(strstr(text, "weir_mps_starts_total{gpu=\"" GPU_A "\"} 1\n"));
	assert_non_null(strstr(text, "weir_mps_faults_total{gpu=\"" GPU_A "\"} 0\n"));
	free(text);
	mps_want(&mps, GPU_A, false);
	text = metrics();
	assert_non_null(strstr(text, "weir_mps_wanted{gpu=\"" GPU_A "\"} 0\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MPS_TEST(starts_and_is_ready),
		MPS_TEST(leases_delay_no_start),
		MPS_TEST(each_gpu_has_its_own),
		MPS_TEST(a_killed_one_is_started_again),
		MPS_TEST(pauses_grow),
		MPS_TEST(goes_on_without_the_agent),
		MPS_TEST(ends_with_the_agent_without_keep),
		MPS_TEST(an_unwanted_one_is_found),
		MPS_TEST(a_foreign_process_is_left_alone),
		MPS_TEST(clients_may_finish),
		MPS_TEST(the_work_of_a_client_is_ended),
		MPS_TEST(work_of_a_silent_daemon_counts_as_ended),
		MPS_TEST(may_be_wanted_again),
		MPS_TEST(a_fault_is_seen_and_passes),
		MPS_TEST(a_server_that_stays_in_fault_is_replaced),
		MPS_TEST(one_that_is_silent_is_not_ended),
		MPS_TEST(an_old_program_serves_one_user),
		MPS_TEST(a_missing_program_is_no_error),
		MPS_TEST(has_metrics),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
