/* Memory accounts: pages and slots, dead processes, restarts of the agent. */
#include "memory-fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned files(void)
{
	unsigned n = 0;

	for (const struct memory *memory = agent.memories.all; memory; memory = memory->hh.next)
		n++;
	return n;
}

static void test_one_account_a_container(void **state)
{
	struct view one, again, other;

	(void)state;
	one = view_of(1000);
	again = view_of(1000);
	other = view_of(1001);
	assert_int_equal(one.slot, again.slot); /* in one process */
	one.account->slots[one.slot].reserved = 5 << 20;
	assert_true(again.account->slots[one.slot].reserved == 5 << 20);
	assert_true(other.account->slots[other.slot].reserved == 0);
	assert_int_equal(files(), 2);
	assert_int_equal(agent.sessions.n, 0);
	view_leave(&one);
	view_leave(&again);
	view_leave(&other);
}

static void test_limit_cannot_be_written(void **state)
{
	struct view view;
	char path[64];

	(void)state;
	view = view_of(1000);
	assert_true(mmap(NULL, WEIR_PAGE_SIZE, PROT_WRITE, MAP_SHARED, view.limit_fd, 0) ==
		    MAP_FAILED);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", view.limit_fd);
	/* Root may if the mount could not be cloned; the agent warns then. */
	if (agent.gpus.root.readonly >= 0)
		assert_int_equal(open(path, O_RDWR | O_CLOEXEC), -1);
	view_leave(&view);
}

static void wait_for_slots(unsigned n)
{
	rig_wait(agent.memories.n == n);
}

/* Another process of the container, which asks for the account and lives on; no longer than this
 * one. */
static pid_t sleeper(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		view_ask();
		pause();
		_exit(0);
	}
	return child;
}

static uint32_t slot_of(const struct view *view, pid_t pid)
{
	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++)
		if (view->account->slots[i].pid == (uint32_t)pid)
			return i;
	fail_msg("no slot");
	return 0;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_dead_processes_are_cleared(void **state)
{
	struct view own = view_of(1000);
	pid_t child = sleeper();

	(void)state;
	wait_for_slots(2);
	uint32_t slot = slot_of(&own, child);
	assert_int_not_equal(own.slot, slot);
	own.account->slots[slot].reserved = 64 << 20;
	own.account->lock = slot + 1;
	end(child);
	wait_for_slots(1);
	assert_true(own.account->slots[slot].reserved == 0);
	assert_true(own.account->lock == 0);
	view_leave(&own);
}

/* The next agent keeps slots of live processes. It clears slots of dead ones, and of PIDs that
 * belong to other containers. */
static void test_outlives_the_agent(void **state)
{
	struct view own = view_of(1000), after;
	pid_t child = sleeper();

	(void)state;
	wait_for_slots(2);
	uint32_t dead = slot_of(&own, child);
	own.account->slots[own.slot].reserved = 6 << 20;
	own.account->slots[dead].reserved = 8 << 20;
	own.account->slots[99].reserved = 9 << 20;
	own.account->slots[99].pid = UINT32_MAX;
	agent_deinit(&agent);
	end(child);

	rig_start(true);
	after = view_of(1000);
	assert_int_equal(after.slot, own.slot);
	assert_true(after.account->slots[own.slot].reserved == 6 << 20);
	assert_true(own.account->slots[dead].reserved == 0);
	assert_true(own.account->slots[99].reserved == 0);
	view_leave(&own);
	view_leave(&after);
}

/* A process whose request for an account is refused. */
static pid_t refused_sleeper(void)
{
	uint64_t before = agent.sessions.refused[WEIR_REFUSED_LIMIT];
	pid_t child = sleeper();

	rig_wait(agent.sessions.refused[WEIR_REFUSED_LIMIT] == before + 1);
	return child;
}

/* A container has a limit of processes; others have room. */
static void test_more_processes_than_slots(void **state)
{
	struct view view = view_of(1000), other;
	char answer[32768];

	(void)state;
	agent.memories.max_of_container = 1;
	pid_t child = refused_sleeper();
	assert_int_equal(agent.memories.n, 1);
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\nweir_refused_total{reason=\"limit\"} 1\n"));
	other = view_of(1001);
	assert_int_equal(agent.memories.n, 2);
	end(child);
	view_leave(&view);
	view_leave(&other);
}

/* One container has all slots of the node. It gets no more of them, but another one gets its first
 * ones. */
static void test_full_node_has_room_for_others(void **state)
{
	struct view view = view_of(1000), other;
	pid_t children[MEMORY_FIRST];

	(void)state;
	agent.memories.max = 4;
	for (unsigned i = 0; i < MEMORY_FIRST - 1; i++) {
		children[i] = sleeper();
		wait_for_slots(i + 2);
	}
	children[MEMORY_FIRST - 1] = refused_sleeper();
	other = view_of(1001);
	assert_int_equal(agent.memories.n, MEMORY_FIRST + 1);
	for (unsigned i = 0; i < MEMORY_FIRST; i++)
		end(children[i]);
	view_leave(&view);
	view_leave(&other);
}

/* The next agent finds more processes than there is room for: they keep their slots. */
static void test_full_node_restarts(void **state)
{
	struct view own = view_of(1000), after, other;
	pid_t child = sleeper();

	(void)state;
	wait_for_slots(2);
	uint32_t slot = slot_of(&own, child);
	own.account->slots[own.slot].reserved = 6 << 20;
	own.account->slots[slot].reserved = 8 << 20;
	agent_deinit(&agent);

	rig_start(true);
	agent.memories.max = 1;
	other = view_of(1001);
	after = view_of(1000);
	assert_int_equal(after.slot, own.slot);
	assert_int_equal(slot_of(&own, child), slot);
	assert_true(own.account->slots[own.slot].reserved == 6 << 20);
	assert_true(own.account->slots[slot].reserved == 8 << 20);
	wait_for_slots(3);
	end(child);
	wait_for_slots(2);
	assert_true(own.account->slots[slot].reserved == 0);
	view_leave(&own);
	view_leave(&after);
	view_leave(&other);
}

static unsigned count_files(void)
{
	char path[128];
	unsigned n = 0;

	snprintf(path, sizeof(path), "%s/state/memory", rig_folder);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		n += *entry->d_name != '.';
	closedir(folder);
	return n;
}

/* From now on @n descriptors can be opened, or a few more. */
static void allow_descriptors(unsigned n)
{
	struct rlimit limit;
	int lowest = dup(0);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)lowest + n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* An agent that is short of descriptors does not know who lives. It forgets nobody. */
static void test_short_of_descriptors(void **state)
{
	struct view own = view_of(1000);
	const struct container_identity identity = next_identity;
	struct memory *memory = NULL;
	struct rlimit limit;
	char gpu[GPU_ID_SIZE];

	(void)state;
	gpu_id_format(fake_hello(WEIR_BIT_NONE).gpu, gpu);
	const struct memory_owner owner = {
		.tenant = "1000 /test", .gpu = gpu, .identity = &identity};
	own.account->slots[own.slot].reserved = 6 << 20;
	agent_deinit(&agent);
	rig_start(true);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned n = 1; n < 32 && !memory; n++) {
		allow_descriptors(n);
		memories_sweep(&agent.memories);
		memory = memories_find(&agent.memories, &owner);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_int_equal(count_files(), 2);
		assert_int_equal(own.account->slots[own.slot].pid, getpid());
		assert_true(own.account->slots[own.slot].reserved == 6 << 20);
	}
	assert_non_null(memory);
	assert_int_equal(agent.memories.n, 1);
	view_leave(&own);
}

/* A container that writes one PID into many slots gets one. */
static void test_a_process_has_one_slot(void **state)
{
	struct view own = view_of(1000), after;

	(void)state;
	agent_deinit(&agent);
	for (unsigned i = 100; i < 110; i++)
		own.account->slots[i].pid = (uint32_t)getpid();
	rig_start(true);
	after = view_of(1000);
	assert_int_equal(agent.memories.n, 1);
	view_leave(&own);
	view_leave(&after);
}

/* Files are removed if their processes die after the restart without a HELLO, and if a full disk
 * left only half of an account. */
static void test_nothing_is_left(void **state)
{
	struct view own = view_of(1000);
	pid_t child = sleeper();
	char path[192];

	(void)state;
	wait_for_slots(2);
	agent_deinit(&agent);
	for (unsigned i = 0; i < WEIR_MEMORY_SLOTS; i++)
		if (own.account->slots[i].pid != (uint32_t)child)
			own.account->slots[i].pid = 0;
	rig_start(true);
	snprintf(path, sizeof(path), "%s/state/memory/limit-00", rig_folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(count_files(), 3);
	memories_sweep(&agent.memories);
	assert_int_equal(count_files(), 2);
	end(child);
	memories_sweep(&agent.memories);
	assert_int_equal(count_files(), 0);
	view_leave(&own);

	own = view_of(1000);
	memories_sweep(&agent.memories);
	assert_int_equal(count_files(), 2);
	view_leave(&own);
}

/* A blocking open would wait for 45 s; alarm() ends this test after 30 s. */
static void test_lease_on_an_account(void **state)
{
	struct view own = view_of(1000);

	(void)state;
	agent_deinit(&agent);
	assert_int_equal(lease(own.account_fd, F_WRLCK), 0);
	assert_int_equal(lease(own.limit_fd, F_RDLCK), 0);
	alarm(30);
	rig_start(true);
	assert_int_equal(count_files(), 2); /* the sweep leaves them: their holder lives */

	int fd = view_ask();
	for (int i = 0; i < 10; i++)
		rig_pump();
	close(fd);
	rig_pump();
	alarm(0);
	assert_int_equal(lease(own.account_fd, F_UNLCK), 0);
	assert_int_equal(lease(own.limit_fd, F_UNLCK), 0);
	view_leave(&own);
	own = view_of(1000);
	view_leave(&own);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(test_one_account_a_container),
		AGENT_TEST(test_limit_cannot_be_written),
		AGENT_TEST(test_dead_processes_are_cleared),
		AGENT_TEST(test_outlives_the_agent),
		AGENT_TEST(test_more_processes_than_slots),
		AGENT_TEST(test_full_node_has_room_for_others),
		AGENT_TEST(test_full_node_restarts),
		AGENT_TEST(test_short_of_descriptors),
		AGENT_TEST(test_a_process_has_one_slot),
		AGENT_TEST(test_nothing_is_left),
		AGENT_TEST(test_lease_on_an_account),
	};

	return RUN_AGENT_TESTS(tests);
}
