/* Several processes on one machine: order of kernels, memory and slots, death of a process. The
 * second process is this program, started with the name of its task. */
#include "driver-test.h"

#include <errno.h>
#include <fcntl.h>
#include <nvml.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define BLOCK_MS 2

/* Memory that the processes share. */
struct board {
	_Atomic uint32_t ready, go, list[64];
};
static struct board *board;

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wait_for(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load(word) < value)
		usleep(500);
}

static pid_t start(const char *what)
{
	uint32_t before = atomic_load(&board->ready);
	pid_t pid = fork();

	if (!pid) {
		execl("/proc/self/exe", "test-driver-machine", what, NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	wait_for(&board->ready, before + 1);
	return pid;
}

static void expect_exit(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void kill_hard(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void share_board(void)
{
	const char *path = getenv("TEST_BOARD");
	FILE *file = fopen(path, "r+");

	if (!file || ftruncate(fileno(file), sizeof(*board)))
		abort();
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	fclose(file);
	ok(cuMemHostRegister(board, sizeof(*board), CU_MEMHOSTREGISTER_DEVICEMAP));
}

static int setup_shared(void **state)
{
	setup(state);
	share_board();
	memset(board, 0, sizeof(*board));
	return 0;
}

/* Appends to the board's list, whose first word counts. */
static void append_to_board(CUstream s, uint32_t value)
{
	CUdeviceptr list = pointer_to(board->list);

	ok(launch2(fx.append, 1, s, &list, &value));
}

static void hold_on_board(CUstream s, unsigned blocks)
{
	CUdeviceptr flag = pointer_to(&board->go), p = fx.memory;

	ok(launch2(fx.hold, blocks, s, &flag, &p));
}

/* The other process: */
static int other(const char *what)
{
	CUstream s;
	CUdeviceptr p;

	setup(NULL);
	share_board();
	s = new_stream(CU_STREAM_NON_BLOCKING);
	if (!strcmp(what, "hold-slots")) /* occupies all of them, and waits with one more block */
		hold_on_board(s, 3);
	else if (!strcmp(what, "append"))
		append_to_board(s, 2);
	else if (!strcmp(what, "memory"))
		ok(cuMemAlloc(&p, 20 << 20));
	else if (!strcmp(what, "gate"))
		ok(cuStreamWaitValue32(s, pointer_to(&board->go), 1, CU_STREAM_WAIT_VALUE_EQ));
	if (!strcmp(what, "gate"))
		hold_on_board(s, 2);
	usleep(20000); /* so that its kernel has begun */
	atomic_fetch_add(&board->ready, 1);
	if (!strcmp(what, "churn")) {
		for (;;) {
			add(s, 4, 1);
			ok(cuStreamSynchronize(s));
		}
	}
	if (!strcmp(what, "memory"))
		wait_for(&board->go, 1);
	ok(cuStreamSynchronize(s));
	return 0;
}

/* Kernels of all processes are in one queue: ours came last, so it starts after theirs. */
static void test_fifo_between_processes(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	pid_t holder = start("hold-slots"), second = start("append");

	(void)state;
	append_to_board(s, 3);
	usleep(30000);
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	assert_int_equal(board->list[0], 0);
	atomic_store(&board->go, 1);
	ok(cuStreamSynchronize(s));
	expect_exit(holder);
	expect_exit(second);
	assert_int_equal(board->list[0], 2);
	assert_int_equal(board->list[1] + board->list[2], 5);
}

/* A client of MPS that has a part of the SMs: others have the rest, whatever it waits for. */
static void test_a_part_of_the_slots(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	char folder[] = "/tmp/weir-part-XXXXXX", control[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(control, sizeof(control), "%s/control", folder);
	close(open(control, O_CREAT | O_WRONLY, 0600));
	setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
	setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", 1);
	pid_t holder = start("hold-slots");
	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	append_to_board(s, 3);
	ok(cuStreamSynchronize(s));
	assert_int_equal(board->list[1], 3);
	atomic_store(&board->go, 1);
	expect_exit(holder);
	unlink(control);
	rmdir(folder);
}

/* A killed process frees its slots and its place in the queue at once. */
static void test_kill_frees_slots(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	for (int i = 0; i < 5; i++) {
		pid_t holder = start("hold-slots");
		int64_t killed;

		append_to_board(s, 1);
		usleep(5000);
		fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
		kill_hard(holder);
		killed = now_ms();
		ok(cuStreamSynchronize(s));
		assert_true(now_ms() - killed < 200);
	}
	assert_int_equal(board->list[0], 5);
}

/* Kills at any moment, also while the victim holds the lock of the shared file. */
static void test_kill_anywhere(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		pid_t victim = start("churn");

		add(s, 20, 1);
		usleep(500 + 379 * i % 3000);
		kill_hard(victim);
		add(s, 20, 1);
		ok(cuStreamSynchronize(s));
	}
	assert_int_equal(device_word(0), 20 * 40);
}

/* A closed gate occupies nothing, so other processes run on, whether its process lives or is
 * killed. */
static void test_gate_disturbs_nobody(void **state)
{
	pid_t gated = start("gate");

	(void)state;
	add(NULL, 20, 1);
	assert_int_equal(device_word(0), 20);
	kill_hard(gated);
	add(NULL, 20, 1);
	assert_int_equal(device_word(0), 40);
}

/* A block occupies its slot for a minimum time: six blocks on two slots need three times that. */
static void test_block_time(void **state)
{
	int64_t began = now_ms();

	(void)state;
	add(NULL, 6, 1);
	ok(cuCtxSynchronize());
	assert_true(now_ms() - began >= 3 * BLOCK_MS - 1);
}

static void test_memory_of_all(void **state)
{
	size_t before, after, total;
	CUdeviceptr p;
	pid_t pid;

	(void)state;
	ok(cuMemGetInfo(&before, &total));
	pid = start("memory");
	ok(cuMemGetInfo(&after, &total));
	assert_true(before - after >= 20u << 20);
	fails(cuMemAlloc(&p, before), CUDA_ERROR_OUT_OF_MEMORY);
	kill_hard(pid);
	ok(cuMemAlloc(&p, before));
	ok(cuMemFree(p));
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
}

/* A child of fork() has no driver, and its parent keeps his. */
static void test_fork(void **state)
{
	pid_t pid = fork();
	CUdevice dev;

	(void)state;
	if (!pid)
		_exit(cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
		      cuDeviceGet(&dev, 0) != CUDA_ERROR_NOT_INITIALIZED ||
		      cuCtxSynchronize() != CUDA_ERROR_NOT_INITIALIZED);
	expect_exit(pid);
	add(NULL, 5, 1);
	assert_int_equal(device_word(0), 5);
}

static const nvmlProcessInfo_t *find(const nvmlProcessInfo_t *list, unsigned n, pid_t pid)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i].pid == (unsigned)pid)
			return &list[i];
	return NULL;
}

/* End of a period in which this process ran, after @last_seen. */
static unsigned long long await_own_sample(nvmlDevice_t device, unsigned long long last_seen)
{
	nvmlProcessUtilizationSample_t samples[8];

	for (int i = 0; i < 30000; i++) {
		unsigned n = countof(samples);
		nvmlReturn_t r = nvmlDeviceGetProcessUtilization(device, samples, &n, last_seen);
		if (r == NVML_SUCCESS) {
			assert_int_equal(samples[0].pid, getpid());
			assert_true(samples[0].smUtil > 0 && samples[0].smUtil <= 100);
			assert_int_equal(samples[0].timeStamp % 200000, 0);
			return samples[0].timeStamp;
		}
		assert_int_equal(r, NVML_ERROR_NOT_FOUND);
		usleep(1000);
	}
	fail_msg("no sample");
	return 0;
}

static void test_nvml(void **state)
{
	nvmlProcessInfo_t list[8];
	nvmlUtilization_t use;
	nvmlMemory_t memory;
	nvmlDevice_t device, same;
	char text[80], expected[80];
	unsigned n = countof(list);
	CUuuid u;
	pid_t pid;

	(void)state;
	assert_int_equal(nvmlDeviceGetCount(&n), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(nvmlInit(), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetCount(&n), NVML_SUCCESS);
	assert_int_equal(n, 1);
	assert_int_equal(nvmlDeviceGetHandleByIndex(1, &device), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetUUID(device, text, sizeof(text)), NVML_SUCCESS);
	ok(cuDeviceGetUuid(&u, 0));
	snprintf(expected, sizeof(expected), "GPU-%02x%02x%02x%02x-", u.bytes[0] & 0xff,
		 u.bytes[1] & 0xff, u.bytes[2] & 0xff, u.bytes[3] & 0xff);
	assert_memory_equal(text, expected, 13);
	assert_int_equal(strlen(text), 40);
	assert_int_equal(nvmlDeviceGetHandleByUUID(text, &same), NVML_SUCCESS);
	assert_ptr_equal(device, same);
	assert_int_equal(nvmlDeviceGetName(device, text, 3), NVML_ERROR_INSUFFICIENT_SIZE);

	pid = start("memory");
	n = countof(list);
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, &n, list), NVML_SUCCESS);
	assert_int_equal(n, 2);
	assert_non_null(find(list, n, getpid()));
	assert_non_null(find(list, n, pid));
	assert_true(find(list, n, pid)->usedGpuMemory >= 20u << 20);
	assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	assert_true(memory.used >= 20u << 20 && memory.used + memory.free == memory.total);
	n = 1;
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, &n, list),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(n, 2);
	kill_hard(pid);
	n = countof(list);
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, &n, list), NVML_SUCCESS);
	assert_int_equal(n, 1);

	assert_int_equal(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
	hold_on_board(NULL, 1);
	usleep(50000);
	assert_int_equal(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
	assert_true(use.gpu > 0);
	unsigned long long seen = await_own_sample(device, 0);
	assert_true(await_own_sample(device, seen) > seen);
	atomic_store(&board->go, 1);
	ok(cuCtxSynchronize());
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
	add(NULL, 1, 1); /* the driver of this process does not notice */
	ok(cuCtxSynchronize());
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/gpu0/%s", getenv("WEIR_SIM_DIR"), name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_xid(void **state)
{
	nvmlEventData_t data;
	nvmlEventSet_t set;
	nvmlDevice_t device;
	nvmlMemory_t memory;
	char path[256];

	(void)state;
	assert_int_equal(nvmlInit(), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
	assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError, set),
			 NVML_SUCCESS);
	assert_int_equal(nvmlEventSetWait(set, &data, 1), NVML_ERROR_TIMEOUT);
	write_file("xid", "79\n");
	assert_int_equal(nvmlEventSetWait(set, &data, 5000), NVML_SUCCESS);
	assert_int_equal(data.eventData, 79);
	assert_ptr_equal(data.device, device);
	assert_int_equal(nvmlEventSetWait(set, &data, 1), NVML_ERROR_TIMEOUT);
	write_file("xid", "nonsense");
	assert_int_equal(nvmlEventSetWait(set, &data, 1), NVML_ERROR_TIMEOUT);

	write_file("lost", "");
	assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_ERROR_GPU_IS_LOST);
	snprintf(path, sizeof(path), "%s/gpu0/lost", getenv("WEIR_SIM_DIR"));
	unlink(path);
	assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	assert_int_equal(nvmlEventSetFree(set), NVML_SUCCESS);
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
}

static void remove_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/gpu0/%s", getenv("WEIR_SIM_DIR"), name);
	assert_int_equal(unlink(path), 0);
}

static void test_memory_errors(void **state)
{
	nvmlFieldValue_t field = {.fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION};
	unsigned corrected, uncorrected, pending, failed;
	unsigned long long errors;
	nvmlDevice_t device;

	(void)state;
	assert_int_equal(nvmlInit(), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
	write_file("ecc", "3\n");
	assert_int_equal(nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
						     NVML_VOLATILE_ECC, &errors),
			 NVML_SUCCESS);
	assert_int_equal(errors, 3);
	assert_int_equal(nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_CORRECTED,
						     NVML_VOLATILE_ECC, &errors),
			 NVML_SUCCESS);
	assert_int_equal(errors, 0);
	write_file("remap-failed", "");
	assert_int_equal(
		nvmlDeviceGetRemappedRows(device, &corrected, &uncorrected, &pending, &failed),
		NVML_SUCCESS);
	assert_true(failed);
	assert_int_equal(nvmlDeviceGetFieldValues(device, 1, &field), NVML_SUCCESS);
	assert_int_equal(field.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	write_file("recovery", "1\n");
	assert_int_equal(nvmlDeviceGetFieldValues(device, 1, &field), NVML_SUCCESS);
	assert_int_equal(field.nvmlReturn, NVML_SUCCESS);
	assert_int_equal(field.value.uiVal, NVML_GPU_RECOVERY_ACTION_GPU_RESET);
	remove_file("ecc");
	remove_file("remap-failed");
	remove_file("recovery");
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_shared, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_fifo_between_processes),
		TEST(test_a_part_of_the_slots),
		TEST(test_kill_frees_slots),
		TEST(test_kill_anywhere),
		TEST(test_gate_disturbs_nobody),
		TEST(test_block_time),
		TEST(test_memory_of_all),
		TEST(test_fork),
		TEST(test_nvml),
		TEST(test_xid),
		TEST(test_memory_errors),
	};
	char path[] = "/tmp/weir-board-XXXXXX", block_us[16];
	int failed;

	if (argc > 1)
		return other(argv[1]);
	own_machine("2", "64M");
	snprintf(block_us, sizeof(block_us), "%d", 1000 * BLOCK_MS);
	setenv("WEIR_SIM_BLOCK_US", block_us, 1);
	close(mkstemp(path));
	setenv("TEST_BOARD", path, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	remove_machine();
	return failed;
}
