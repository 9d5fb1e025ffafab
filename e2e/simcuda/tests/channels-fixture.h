/* What tests of channel groups share: commands, and other processes that hand over their objects.
 * Those are the test's program again, with a task and a socket. */
#pragma once

#include "driver-test.h"
#include "rm-watch.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void see_slice(uint64_t us)
{
	seen.slice = us;
}

/* Memory that the processes share. */
struct board {
	_Atomic uint32_t ready, go, list[64];
};
static struct board *board;

static inline uint32_t command_of_size(const struct seen *s, uint32_t object, uint32_t command,
				       void *params, uint32_t size)
{
	struct rm_control p = {.client = s->client,
			       .object = object,
			       .command = command,
			       .params = (uintptr_t)params,
			       .params_size = size};

	if (syscall(SYS_ioctl, s->fd, RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control), &p) < 0)
		return 0x10000u + (uint32_t)errno;
	return p.status;
}
#define command(s, object, number, params) \
	command_of_size(s, object, number, params, sizeof(*(params)))

static inline uint32_t set_slice(const struct seen *s, uint64_t us)
{
	struct rm_slice slice = {us};

	return command(s, s->compute, RM_SET_SLICE, &slice);
}

static inline uint32_t disable_channels(const struct seen *s, bool disable)
{
	struct rm_disable_channels p = {.disable = disable, .n = s->n_channels};

	for (uint32_t i = 0; i < s->n_channels; i++) {
		p.clients[i] = s->client;
		p.channels[i] = s->channels[i];
	}
	return command(s, s->subdevice, RM_DISABLE_CHANNELS, &p);
}

static inline void disable(const struct seen *s)
{
	assert_int_equal(disable_channels(s, true), RM_OK);
}

static inline void enable(const struct seen *s)
{
	assert_int_equal(disable_channels(s, false), RM_OK);
}

static inline void wait_for(_Atomic uint32_t *word, uint32_t value)
{
	for (int i = 0; atomic_load(word) < value; i++) {
		if (i == 120000)
			fail_msg("nothing happens");
		usleep(500);
	}
}

static inline void share_board(void)
{
	FILE *file = fopen(getenv("TEST_BOARD"), "r+");

	if (!file || ftruncate(fileno(file), sizeof(*board)))
		abort();
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	fclose(file);
}

static inline void send_seen(int socket, const struct seen *what)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {(void *)what, sizeof(*what)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.space)};

	memcpy(CMSG_DATA(&control.header), &what->fd, sizeof(int));
	if (sendmsg(socket, &message, 0) != sizeof(*what))
		abort();
}

static inline void receive_seen(int socket, struct seen *what)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {what, sizeof(*what)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.space)};

	if (recvmsg(socket, &message, 0) != sizeof(*what))
		abort();
	memcpy(&what->fd, CMSG_DATA(&control.header), sizeof(int));
}

struct other {
	pid_t pid;
	int socket;
	struct seen seen;
};

static inline struct other start(const char *task, const char *folder)
{
	struct other other;
	char number[16];
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	other.pid = fork();
	if (!other.pid) {
		close(pair[0]);
		snprintf(number, sizeof(number), "%d", pair[1]);
		setenv("WEIR_SIM_DIR", folder, 1);
		execl("/proc/self/exe", "other", task, number, NULL);
		_exit(127);
	}
	assert_true(other.pid > 0);
	close(pair[1]);
	other.socket = pair[0];
	return other;
}

static inline struct other start_client(const char *task, const char *folder)
{
	struct other other = start(task, folder);

	receive_seen(other.socket, &other.seen);
	return other;
}

static inline void leave(struct other *other)
{
	close(other->socket);
	if (other->seen.fd > 0)
		close(other->seen.fd);
}

static inline void expect_exit(struct other *other)
{
	int status;

	assert_int_equal(waitpid(other->pid, &status, 0), other->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	leave(other);
}

static inline void kill_hard(struct other *other)
{
	kill(other->pid, SIGKILL);
	waitpid(other->pid, NULL, 0);
	leave(other);
}

static inline void hold_on_board(CUstream s, unsigned blocks)
{
	CUdeviceptr flag = pointer_to(&board->go), p = pointer_to(&board->list[0]);

	ok(launch2(fx.hold, blocks, s, &flag, &p));
}

/* Blocks that need all slots at once. */
static inline void use_all_slots(void)
{
	unsigned sms = 2;
	uint32_t zero = 0;

	ok(cuMemcpyHtoD(fx.memory, &zero, sizeof(zero)));
	ok(launch2(fx.meet, sms, NULL, &fx.memory, &sms));
	ok(cuCtxSynchronize());
}

static inline char *own_folder(void)
{
	return getenv("WEIR_SIM_DIR");
}

static inline int setup_shared(void **state)
{
	setup(state);
	share_board();
	memset(board, 0, sizeof(*board));
	ok(cuMemHostRegister(board, sizeof(*board), CU_MEMHOSTREGISTER_DEVICEMAP));
	return 0;
}

/* In a machine that cannot have device nodes there is nothing to test. The test framework takes the
 * signal; the driver takes it back. */
static inline void begin(void)
{
	if (!seen.client)
		skip();
	ok(cuInit(0));
}

static char board_path[] = "/tmp/weir-board-XXXXXX";

/* And a machine without other processes. */
static inline void make_board(void)
{
	own_machine("2", "64M");
	close(mkstemp(board_path));
	setenv("TEST_BOARD", board_path, 1);
}

static inline void remove_board(void)
{
	unlink(board_path);
	remove_machine();
}
