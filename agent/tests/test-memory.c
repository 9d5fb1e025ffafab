/* Memory accounts: pages and slots, dead processes, restarts of the agent, limits. */
#include "agent-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/units.h"

static void test_quantities(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes; /* 0: refused */
	} cases[] = {
		{"8Gi", 8ull << 30},
		{"512Mi", 512ull << 20},
		{"1.5Gi", 3ull << 29},
		{"2G", 2000000000},
		{"2097152", 2 << 20},
		{"1Pi", 1ull << 50},
		{"1Mi", 0},
		{"2Pi", 0},
		{"0", 0},
		{"", 0},
		{"Gi", 0},
		{"8GB", 0},
		{"8 Gi", 0},
		{"-8Gi", 0},
		{"+8Gi", 0},
		{"8.Gi", 0},
		{".5Gi", 0},
		{"1e9", 0},
		{"0x8Gi", 0},
		{"99999999999999999999999999999Gi", 0},
		{"1.0000000000000000000000000001Gi", 0},
	};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++) {
		uint64_t bytes = 0;
		bool good = memory_parse(cases[i].text, &bytes);
		assert_int_equal(good, cases[i].bytes != 0);
		assert_true(bytes == cases[i].bytes);
	}
}

/* A process's view of its container's account. */
struct view {
	uint32_t slot;
	int limit_fd, account_fd;
	const struct weir_limit_page *limit;
	struct weir_account_page *account;
};

static void *page_at(int fd, int protection)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, protection, MAP_SHARED, fd, 0);

	assert_true(page != MAP_FAILED);
	return page;
}

static int ask(void)
{
	struct weir_hello hello = fake_hello(WEIR_BIT_NONE);
	struct weir_memory message = {0};
	int fd = fake_connect();

	weir_header_init(&message.header, WEIR_MEMORY, sizeof(message));
	memcpy(message.gpu, hello.gpu, sizeof(message.gpu));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), NULL, 0), 0);
	return fd;
}

static struct view read_account(int fd)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	assert_int_equal(fake_receive(fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_ACCOUNT);
	close(fd);
	rig_pump();
	return (struct view){message.account.slot, fds[0], fds[1], page_at(fds[0], PROT_READ),
			     page_at(fds[1], PROT_READ | PROT_WRITE)};
}

/* Of a process with next_identity. */
static struct view view_of_next(void)
{
	int fd = ask();

	rig_pump();
	return read_account(fd);
}

static struct view view_of(uid_t uid)
{
	next_identity = (struct container_identity){.uid = uid, .cgroup = "/test"};
	return view_of_next();
}

/* A client with next_identity. */
static struct fake fake_join_pod(void)
{
	struct weir_hello hello = fake_hello(WEIR_BIT_NONE);
	struct fake fake = {.fd = fake_connect()};

	assert_int_equal(weir_message_send(fake.fd, &hello, sizeof(hello), NULL, 0), 0);
	rig_pump();
	fake_welcome(&fake);
	return fake;
}

static void leave(const struct view *view)
{
	munmap((void *)view->limit, WEIR_PAGE_SIZE);
	munmap(view->account, WEIR_PAGE_SIZE);
	close(view->limit_fd);
	close(view->account_fd);
}

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
	leave(&one);
	leave(&again);
	leave(&other);
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
	leave(&view);
}

static void wait_for_slots(unsigned n)
{
	for (int i = 0; i < 1000 && agent.memories.n != n; i++) {
		usleep(1000);
		rig_pump();
	}
	assert_int_equal(agent.memories.n, n);
}

/* Another process of the container, which asks for the account and lives on. */
static pid_t sleeper(void)
{
	pid_t child = fork();

	if (child == 0) {
		ask();
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
	leave(&own);
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
	leave(&own);
	leave(&after);
}

/* A process whose request for an account is refused. */
static pid_t refused_sleeper(void)
{
	uint64_t before = agent.sessions.refused[WEIR_REFUSED_LIMIT];
	pid_t child = sleeper();

	for (int i = 0; i < 1000 && agent.sessions.refused[WEIR_REFUSED_LIMIT] == before; i++) {
		usleep(1000);
		rig_pump();
	}
	assert_true(agent.sessions.refused[WEIR_REFUSED_LIMIT] == before + 1);
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
	leave(&view);
	leave(&other);
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
	leave(&view);
	leave(&other);
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
	leave(&own);
	leave(&after);
	leave(&other);
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
	gpu_format_id(fake_hello(WEIR_BIT_NONE).gpu, gpu);
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
	leave(&own);
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
	leave(&own);
	leave(&after);
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
	leave(&own);

	own = view_of(1000);
	memories_sweep(&agent.memories);
	assert_int_equal(count_files(), 2);
	leave(&own);
}

static void remove_mark(void)
{
	char mark[128];

	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, rig_folder);
	assert_int_equal(unlink(mark), 0);
}

static bool marked(void)
{
	char mark[128];

	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, rig_folder);
	return access(mark, F_OK) == 0;
}

/* The pod's processes may start while there is no agent. */
static void test_pod_is_marked_before_its_processes(void **state)
{
	struct pod *pod = calloc(1, sizeof(*pod));

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	known_pod = pod;
	snprintf(pod->memory, sizeof(pod->memory), "two");
	tell_changed(&agent);
	assert_false(marked());
	snprintf(pod->memory, sizeof(pod->memory), "48Mi");
	tell_changed(&agent);
	assert_true(marked());
	assert_true(agent.decider.limited);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

static int lease(int fd, int type)
{
	signal(SIGIO, SIG_IGN);
	return fcntl(fd, F_SETLEASE, type);
}

/* A blocking open would wait for 45 s; alarm() ends this test after 10 s. */
static void test_lease_on_an_account(void **state)
{
	struct view own = view_of(1000);

	(void)state;
	agent_deinit(&agent);
	assert_int_equal(lease(own.account_fd, F_WRLCK), 0);
	assert_int_equal(lease(own.limit_fd, F_RDLCK), 0);
	alarm(10);
	rig_start(true);
	assert_int_equal(count_files(), 2); /* the sweep leaves them: their holder lives */

	int fd = ask();
	for (int i = 0; i < 10; i++)
		rig_pump();
	close(fd);
	rig_pump();
	alarm(0);
	assert_int_equal(lease(own.account_fd, F_UNLCK), 0);
	assert_int_equal(lease(own.limit_fd, F_UNLCK), 0);
	leave(&own);
	own = view_of(1000);
	leave(&own);
}

static void test_lease_on_the_mark(void **state)
{
	char mark[128];

	(void)state;
	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, rig_folder);
	memories_mark(&agent.memories);
	int fd = open(mark, O_RDONLY | O_CLOEXEC);
	assert_int_equal(lease(fd, F_WRLCK), 0);
	alarm(10);
	memories_mark(&agent.memories);
	alarm(0);
	close(fd);
	assert_true(marked());
	remove_mark();
}

static void test_rule_is_marked_before_its_processes(void **state)
{
	(void)state;
	decider_mark_limits(&agent.decider);
	assert_false(marked());
	agent.config.rules[1].memory = 1u << 30;
	decider_mark_limits(&agent.decider);
	assert_true(marked());
	remove_mark();
}

/* An edited annotation applies at once. A wrong one, and the pod's disappearance, leave the
 * previous limit. */
static void test_limit_is_live(void **state)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	struct view view;

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	snprintf(pod->uid, sizeof(pod->uid), "uid");
	snprintf(pod->memory, sizeof(pod->memory), "8Gi");
	known_pod = pod;
	next_identity = (struct container_identity){.in_pod = true, .pod_uid = "uid"};
	struct fake fake = fake_join_pod();
	view = view_of_next();
	assert_true(view.limit->limit == 8ull << 30);
	assert_true(fake.control->memory_limit == 8ull << 30);
	snprintf(pod->memory, sizeof(pod->memory), "2Gi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 2ull << 30);
	snprintf(pod->memory, sizeof(pod->memory), "two");
	tell_changed(&agent);
	assert_true(view.limit->limit == 2ull << 30);
	known_pod = NULL;
	tell_changed(&agent);
	assert_true(view.limit->limit == 2ull << 30);

	/* An agent that knows no pods yet leaves it, too. */
	fake_leave(&fake);
	agent_deinit(&agent);
	rig_start(false);
	struct view after = view_of_next();
	assert_true(after.limit->limit == 2ull << 30);
	known_pod = pod;
	*pod->memory = '\0';
	fake = fake_join_pod();
	assert_true(after.limit->limit == 0);
	fake_leave(&fake);
	leave(&view);
	leave(&after);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

/* Without news of the pod the answer is REFUSED. */
static void expect_no(const char *uid)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	snprintf(next_identity.pod_uid, sizeof(next_identity.pod_uid), "%s", uid);
	int fd = ask();
	while (agent.sessions.refused[WEIR_REFUSED_INTERNAL] == 0)
		loop_step(&agent.loop, 100);
	assert_int_equal(fake_receive(fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_REFUSED);
	assert_int_equal(message.refused.flags, WEIR_REFUSED_LIMITED);
	close(fd);
}

/* A container that is faster than the news of its pod gets no slot before its limit is known, even
 * if the client has closed its half of the connection. */
static void test_limit_is_waited_for(void **state)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	snprintf(pod->uid, sizeof(pod->uid), "uid");
	snprintf(pod->memory, sizeof(pod->memory), "8Gi");
	next_identity = (struct container_identity){.in_pod = true, .pod_uid = "uid"};
	unsigned hurried = rig_hurried;
	int fd = ask(), late = ask();
	shutdown(fd, SHUT_WR);
	rig_pump();
	assert_true(rig_hurried > hurried);
	assert_int_equal(fake_receive(fd, &message, fds), -EAGAIN);
	close(late); /* hangs up */
	rig_pump();
	assert_int_equal(agent.sessions.n, 1);

	known_pod = pod;
	tell_changed(&agent);
	struct view view = read_account(fd);
	assert_true(view.limit->limit == 8ull << 30);
	assert_int_equal(agent.sessions.n, 0);

	expect_no("other");
	leave(&view);
	known_pod = NULL;
	free(pod);

	/* The next agent keeps the node marked although it knows no pods yet. */
	agent_deinit(&agent);
	rig_start(false);
	expect_no("third");
	remove_mark();
}

/* Processes with memory need not be connected. */
static void test_new_default_without_connections(void **state)
{
	char path[64];

	(void)state;
	struct view view = view_of(9);
	assert_int_equal(agent.sessions.n, 0);
	assert_int_equal(view.limit->limit, 0);
	snprintf(path, sizeof(path), "%s/f.yaml", rig_folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("memoryDefault: 8Gi\n", file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(agent_follow(&agent, path), 0);
	assert_true(view.limit->limit == 8ull << 30);
	unlink(path);
	leave(&view);
	remove_mark();
}

static struct pod *pod_with_share(const char *namespace, uint32_t share)
{
	struct pod *pod = calloc(1, sizeof(*pod) + sizeof(pod->containers[0]));

	assert_non_null(pod);
	snprintf(pod->uid, sizeof(pod->uid), "uid");
	snprintf(pod->namespace_, sizeof(pod->namespace_), "%s", namespace);
	pod->n_containers = 1;
	pod->least_share = share;
	snprintf(pod->containers[0].id, sizeof(pod->containers[0].id), "c0ffee");
	pod->containers[0].share = share;
	return pod;
}

static struct view start_with_shares(struct pod *pod)
{
	agent_deinit(&agent);
	rig_start(false);
	agent.config.gpu.memory.kind = MEMORY_SHARE;
	known_pod = pod;
	next_identity = (struct container_identity){
		.in_pod = true, .pod_uid = "uid", .container_id = "c0ffee"};
	struct view first = view_of_next();
	leave(&first);
	agent.gpus.all->memory = 1000ull << 20;
	agent.tenants.all->memory_known = false;
	return view_of_next();
}

/* The share is the limit; an annotation raises it in raiseNamespaces only. */
static void test_limit_of_share(void **state)
{
	struct pod *pod = pod_with_share("other", 30);
	struct view view = start_with_shares(pod);

	(void)state;
	assert_true(view.limit->limit == 300ull << 20);
	snprintf(pod->memory, sizeof(pod->memory), "100Mi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 100ull << 20);
	snprintf(pod->memory, sizeof(pod->memory), "1Pi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 300ull << 20);
	snprintf(pod->namespace_, sizeof(pod->namespace_), "trusted");
	snprintf(pod->memory, sizeof(pod->memory), "400Mi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 400ull << 20);
	/* A whole GPU has no limit. */
	*pod->memory = '\0';
	pod->containers[0].share = 100;
	tell_changed(&agent);
	assert_true(view.limit->limit == 0);
	leave(&view);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

/* Until the container is known, its share is the smallest of its pod. */
static void test_least_share(void **state)
{
	struct pod *pod = pod_with_share("other", 30);
	struct view view = start_with_shares(pod);

	(void)state;
	leave(&view);
	snprintf(pod->containers[0].id, sizeof(pod->containers[0].id), "decaf");
	pod->least_share = 20;
	agent.tenants.all->memory_known = false;
	view = view_of_next();
	assert_true(view.limit->limit == 200ull << 20);
	leave(&view);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantities),
		AGENT_TEST(test_one_account_a_container),
		AGENT_TEST(test_limit_cannot_be_written),
		AGENT_TEST(test_dead_processes_are_cleared),
		AGENT_TEST(test_outlives_the_agent),
		AGENT_TEST(test_nothing_is_left),
		AGENT_TEST(test_pod_is_marked_before_its_processes),
		AGENT_TEST(test_lease_on_an_account),
		AGENT_TEST(test_lease_on_the_mark),
		AGENT_TEST(test_rule_is_marked_before_its_processes),
		AGENT_TEST(test_limit_is_live),
		AGENT_TEST(test_limit_is_waited_for),
		AGENT_TEST(test_new_default_without_connections),
		AGENT_TEST(test_limit_of_share),
		AGENT_TEST(test_least_share),
		AGENT_TEST(test_more_processes_than_slots),
		AGENT_TEST(test_full_node_has_room_for_others),
		AGENT_TEST(test_full_node_restarts),
		AGENT_TEST(test_a_process_has_one_slot),
		AGENT_TEST(test_short_of_descriptors),
	};

	return RUN_AGENT_TESTS(tests);
}
