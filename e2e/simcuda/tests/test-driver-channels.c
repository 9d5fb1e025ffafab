/* Channel groups: what a context asks the resource manager for, groups that are disabled and
 * enabled, from their own process and from others, and time slices. Other processes are this
 * program, started with the name of its task. */
#include "channels-fixture.h"

#include <nvml.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define NOT_FOUND  0x57u
#define BAD_CLIENT 0x23u
#define BAD_SIZE   0x3au

/* count(flag, list): block b adds 1 to list[b] until *flag is not 0. */
static const char count_ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry count(.param .u64 flag, .param .u64 list)\n{\n"
	" .reg .pred %p;\n .reg .u32 %v, %o, %b;\n .reg .u64 %f, %a, %i;\n"
	" ld.param.u64 %f, [flag];\n ld.param.u64 %a, [list];\n"
	" mov.u32 %b, %ctaid.x;\n mul.wide.u32 %i, %b, 4;\n add.u64 %a, %a, %i;\n"
	"AGAIN:\n atom.global.add.u32 %o, [%a], 1;\n ld.volatile.global.u32 %v, [%f];\n"
	" setp.eq.u32 %p, %v, 0;\n @%p bra AGAIN;\n ret;\n}\n";

/* The other processes: */

static void count_on_board(size_t first)
{
	CUdeviceptr flag = pointer_to(&board->go), p = pointer_to(&board->list[first]);
	CUmodule module;
	CUfunction count;

	ok(cuModuleLoadData(&module, count_ptx));
	ok(cuModuleGetFunction(&count, module, "count"));
	ok(launch2(count, 2, NULL, &flag, &p));
}

/* As an agent: it has no context, gets the objects of another process and does what it is told: 0:
 * disable, 1: enable, else a slice. */
static int agent(int socket)
{
	struct seen theirs;
	uint32_t what;

	if (nvmlInit() != NVML_SUCCESS)
		return 1;
	receive_seen(socket, &theirs);
	while (read(socket, &what, sizeof(what)) == sizeof(what)) {
		what = what < 2 ? disable_channels(&theirs, !what) : set_slice(&theirs, what);
		if (write(socket, &what, sizeof(what)) < 0)
			return 1;
	}
	return 0;
}

static int other(const char *task, int socket)
{
	share_board();
	if (!strcmp(task, "agent"))
		return agent(socket);
	if (!strcmp(task, "nobody") && setresuid(65534, 65534, 65534) < 0)
		return 1;
	setup(NULL);
	ok(cuMemHostRegister(board, sizeof(*board), CU_MEMHOSTREGISTER_DEVICEMAP));
	if (!strcmp(task, "hold") || !strcmp(task, "nobody"))
		hold_on_board(NULL, 2);
	else if (!strcmp(task, "count"))
		count_on_board(0);
	else if (!strcmp(task, "count-too"))
		count_on_board(2);
	for (int i = 0; !strcmp(task, "many") && i < 5000; i++)
		add(NULL, 1, 1);
	send_seen(socket, &seen);
	ok(cuCtxSynchronize());
	return 0;
}

static void test_objects_of_a_context(void **state)
{
	struct rm_gpu_id id = {.flags = RM_GPU_ID_BINARY};
	struct rm_slice slice;
	struct stat st;
	CUuuid uuid;

	(void)state;
	begin();
	assert_int_equal(fstat(seen.fd, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(st.st_rdev, makedev(RM_DEVICE_MAJOR, RM_DEVICE_MINOR));
	assert_true(seen.compute && seen.copy);
	assert_int_equal(seen.n_channels, 8);
	assert_int_equal(seen.n_copy_channels, 1);
	assert_int_equal(seen.slice, 2048);
	assert_int_equal(command(&seen, seen.compute, RM_GET_SLICE, &slice), RM_OK);
	assert_int_equal(slice.us, 2048);
	assert_int_equal(set_slice(&seen, 50), RM_OK);
	assert_int_equal(command(&seen, seen.compute, RM_GET_SLICE, &slice), RM_OK);
	assert_int_equal(slice.us, 50);
	assert_int_equal(command(&seen, seen.subdevice, RM_GPU_ID, &id), RM_OK);
	ok(cuDeviceGetUuid(&uuid, 0));
	assert_int_equal(id.length, 16);
	assert_memory_equal(id.data, uuid.bytes, 16);
}

/* A context's end ends its groups, not the client. */
static void test_objects_end(void **state)
{
	struct seen first = seen;
	sigset_t all, before;
	CUcontext second;

	(void)state;
	begin();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before); /* as threads of libraries have it */
	ok(cuCtxCreate(&second, NULL, 0, 0));
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_not_equal(seen.compute, first.compute);
	assert_int_equal(set_slice(&seen, 1000), RM_OK);
	ok(cuCtxDestroy(second));
	assert_int_equal(set_slice(&seen, 1000), NOT_FOUND);
	assert_int_equal(disable_channels(&seen, true), NOT_FOUND);
	assert_int_equal(set_slice(&first, 1000), RM_OK);
	ok(cuCtxSetCurrent(fx.ctx));
}

static void test_wrong_calls(void **state)
{
	struct rm_disable_channels many = {.n = RM_DISABLE_MAX + 1};
	struct rm_slice slice = {1000};
	struct seen wrong = seen;
	struct rm_alloc p = {.client = seen.client,
			     .parent = seen.compute,
			     .object = seen.channels[0],
			     .class = 0xc86f};

	(void)state;
	begin();
	wrong.client++;
	assert_int_equal(set_slice(&wrong, 1000), BAD_CLIENT);
	wrong.client = 0;
	assert_int_equal(set_slice(&wrong, 1000), BAD_CLIENT);
	assert_int_equal(command(&seen, seen.compute + 1000, RM_SET_SLICE, &slice), NOT_FOUND);
	assert_int_equal(command(&seen, seen.subdevice, RM_SET_SLICE, &slice), 0x56);
	assert_int_equal(command(&seen, seen.compute, 0xa06c01ff, &slice), 0x56);
	assert_int_equal(command_of_size(&seen, seen.compute, RM_SET_SLICE, &slice, 4), BAD_SIZE);
	assert_int_equal(command_of_size(&seen, seen.compute, RM_SET_SLICE, NULL, 8), 0x1e);
	assert_int_equal(command(&seen, seen.subdevice, RM_DISABLE_CHANNELS, &many), 0x1f);
	assert_int_equal(
		syscall(SYS_ioctl, seen.fd, RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc), &p), 0);
	assert_int_equal(p.status, 0x19);
	errno = 0;
	assert_int_equal(
		syscall(SYS_ioctl, seen.fd, RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc), NULL), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(syscall(SYS_ioctl, seen.fd, RM_REQUEST(0xff, int), &slice), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(syscall(SYS_ioctl, 0, RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc), &p),
			 -1);
	assert_int_equal(errno, ENOTTY);
}

/* Some channels of a group do not make it. */
static void test_all_channels_count(void **state)
{
	struct seen some = seen;

	(void)state;
	begin();
	some.n_channels--;
	disable(&some);
	add(NULL, 1, 1);
	ok(cuCtxSynchronize());
	disable(&seen);
	enable(&some);
	add(NULL, 1, 1);
	ok(cuCtxSynchronize());
	enable(&seen);
}

/* While a group is disabled, calls return and the GPU does nothing. */
static void test_nothing_progresses(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING), gated = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p, word = pointer_to(fx.host);
	uint32_t value = 7;
	CUevent event;

	(void)state;
	begin();
	ok(cuEventCreate(&event, 0));
	ok(cuStreamWaitValue32(gated, word + 64, 1, CU_STREAM_WAIT_VALUE_EQ));
	disable(&seen);
	add(s, 4, 1);
	ok(cuStreamWriteValue32(s, word, 1, 0));
	ok(cuEventRecord(event, s));
	set_word(fx.host + 16, 1);
	ok(cuMemAlloc(&p, 4096));
	ok(cuMemsetD32Async(p, value, 1, gated));
	ok(cuMemcpyDtoHAsync(fx.host + 1, p, 4, gated));
	/* Others run. */
	struct other other = start_client("hold", own_folder());
	atomic_store(&board->go, 1);
	expect_exit(&other);
	assert_int_equal(board->list[0], 2);
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	fails(cuStreamQuery(gated), CUDA_ERROR_NOT_READY);
	fails(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(get_word(fx.host), 0);
	assert_int_equal(get_word(fx.host + 1), 0);
	enable(&seen);
	ok(cuStreamSynchronize(s));
	ok(cuStreamSynchronize(gated));
	assert_int_equal(get_word(fx.host), 1);
	assert_int_equal(get_word(fx.host + 1), value);
	assert_int_equal(device_word(0), 4);
}

/* A context may end while it is stopped, in the middle of a kernel. */
static void test_context_ends_disabled(void **state)
{
	CUcontext second;
	CUmodule module;
	CUfunction function;
	CUdeviceptr flag = pointer_to(&board->go), p;

	(void)state;
	begin();
	ok(cuCtxCreate(&second, NULL, 0, 0));
	ok(cuModuleLoadData(&module, test_ptx));
	ok(cuModuleGetFunction(&function, module, "hold"));
	ok(cuMemAlloc(&p, 4096));
	ok(launch2(function, 4, NULL, &flag, &p));
	disable(&seen);
	ok(cuCtxDestroy(second));
	ok(cuCtxSetCurrent(fx.ctx));
	use_all_slots();
}

/* In the middle of a kernel, by another process: its slots are others' until it is enabled. */
static void test_disabled_in_mid_kernel(void **state)
{
	struct other other;

	(void)state;
	begin();
	other = start_client("hold", own_folder());
	disable(&other.seen);
	use_all_slots();
	atomic_store(&board->go, 1);
	use_all_slots();
	use_all_slots();
	assert_int_equal(board->list[0], 0);
	enable(&other.seen);
	expect_exit(&other);
	assert_int_equal(board->list[0], 2);
}

/* What a stopped process has in the queue is in nobody's way, however much others queue. */
static void test_queue_of_the_stopped(void **state)
{
	struct other other;

	(void)state;
	begin();
	other = start_client("hold", own_folder());
	hold_on_board(NULL, 1); /* behind theirs, so both wait in the queue */
	disable(&seen);
	for (int i = 0; i < 20; i++)
		add(NULL, 1, 1);
	kill_hard(&other);
	other = start_client("many", own_folder());
	expect_exit(&other);
	atomic_store(&board->go, 1);
	enable(&seen);
	ok(cuCtxSynchronize());
	assert_int_equal(device_word(0), 20);
}

static void test_killed_while_disabled(void **state)
{
	size_t before, after, total;
	struct other other;

	(void)state;
	begin();
	ok(cuMemGetInfo(&before, &total));
	other = start_client("hold", own_folder());
	disable(&other.seen);
	kill(other.pid, SIGKILL);
	waitpid(other.pid, NULL, 0);
	use_all_slots();
	assert_int_equal(set_slice(&other.seen, 1000), BAD_CLIENT);
	assert_int_equal(disable_channels(&other.seen, false), BAD_CLIENT);
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
	leave(&other);
}

/* The right handles, the wrong descriptor; and channels of somebody else. */
static void test_objects_of_others(void **state)
{
	struct other other;
	struct seen mixed;

	(void)state;
	begin();
	other = start_client("hold", own_folder());
	mixed = other.seen;
	mixed.fd = seen.fd;
	assert_int_equal(set_slice(&mixed, 1000), BAD_CLIENT);
	assert_int_equal(disable_channels(&mixed, true), BAD_CLIENT);
	mixed = seen;
	mixed.fd = other.seen.fd;
	assert_int_equal(set_slice(&mixed, 1000), BAD_CLIENT);
	struct rm_disable_channels p = {.disable = 1, .n = 1, .clients = {other.seen.client}};
	p.channels[0] = other.seen.channels[0];
	assert_int_equal(command(&seen, seen.subdevice, RM_DISABLE_CHANNELS, &p), BAD_CLIENT);
	atomic_store(&board->go, 1);
	expect_exit(&other);
}

static struct other start_agent(const struct seen *theirs, const char *folder)
{
	struct other other = start("agent", folder);

	other.seen.fd = -1;
	send_seen(other.socket, theirs);
	return other;
}

static void tell(const struct other *agent, uint32_t what)
{
	uint32_t answer = what;

	assert_int_equal(write(agent->socket, &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(read(agent->socket, &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer, RM_OK);
}

static void dismiss(struct other *agent)
{
	shutdown(agent->socket, SHUT_RDWR);
	expect_exit(agent);
}

/* A process with NVML only, which got our objects. */
static void test_agent(void **state)
{
	struct other other;

	(void)state;
	begin();
	other = start_agent(&seen, own_folder());
	tell(&other, 0);
	add(NULL, 1, 1);
	fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	tell(&other, 1);
	ok(cuCtxSynchronize());
	dismiss(&other);
}

/* A process that may not make nodes takes one that a process with NVML made. */
static void test_without_rights(void **state)
{
	struct other other;

	(void)state;
	begin();
	assert_int_equal(nvmlInit(), NVML_SUCCESS);
	assert_int_equal(chmod(own_folder(), 0777), 0);
	other = start_client("nobody", own_folder());
	disable(&other.seen);
	use_all_slots();
	enable(&other.seen);
	atomic_store(&board->go, 1);
	expect_exit(&other);
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
}

static int child_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* A child of fork() has no driver; its calls fail. What it executes is not disturbed. */
static void test_children(void **state)
{
	pid_t pid;

	(void)state;
	begin();
	pid = fork();
	if (!pid)
		_exit(set_slice(&seen, 1000) != 0x10000u + ENODEV);
	assert_int_equal(child_status(pid), 0);
	pid = fork();
	if (!pid) {
		execlp("sh", "sh", "-c", "stty </dev/null 2>&- || true", NULL);
		_exit(127);
	}
	assert_int_equal(child_status(pid), 0);
	assert_int_equal(set_slice(&seen, 1000), RM_OK);
}

/* A machine with time slices, of which this process is no part. */
static char sliced[] = "/tmp/weir-sim-XXXXXX";

/* Both blocks of a counting kernel have done so much that they must have asked several times
 * whether they may run. */
static void await_progress(size_t first)
{
	for (size_t i = first; i < first + 2; i++)
		wait_for(&board->list[i], atomic_load(&board->list[i]) + 20000);
}

/* Two processes whose kernels fill the GPU take turns, and one whose slice is no longer than a
 * switch gets nowhere beside the other. */
static void test_slices(void **state)
{
	const char *folder = sliced;
	struct other a, b, agent;
	uint32_t stands;

	(void)state;
	begin();
	setenv("WEIR_SIM_SLICES", "1", 1);
	a = start_client("count", folder);
	b = start_client("count-too", folder);
	unsetenv("WEIR_SIM_SLICES");
	agent = start_agent(&a.seen, folder);
	await_progress(0);
	await_progress(2);
	await_progress(0);
	tell(&agent, 0);
	await_progress(2); /* it is not in the middle of a slice of A */
	tell(&agent, 50);
	stands = atomic_load(&board->list[0]);
	tell(&agent, 1);
	for (int i = 0; i < 3; i++)
		await_progress(2);
	assert_int_equal(atomic_load(&board->list[0]), stands);
	tell(&agent, 20000);
	await_progress(0);
	dismiss(&agent);
	atomic_store(&board->go, 1);
	expect_exit(&a);
	expect_exit(&b);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_shared, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_objects_of_a_context),
		TEST(test_objects_end),
		TEST(test_wrong_calls),
		TEST(test_all_channels_count),
		TEST(test_nothing_progresses),
		TEST(test_context_ends_disabled),
		TEST(test_disabled_in_mid_kernel),
		TEST(test_queue_of_the_stopped),
		TEST(test_killed_while_disabled),
		TEST(test_objects_of_others),
		TEST(test_agent),
		TEST(test_without_rights),
		TEST(test_children),
		TEST(test_slices),
	};
	int failed;

	if (argc > 2)
		return other(argv[1], atoi(argv[2]));
	if (!mkdtemp(sliced))
		abort();
	make_board();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_board();
	setenv("WEIR_SIM_DIR", sliced, 1);
	remove_machine();
	return failed;
}
