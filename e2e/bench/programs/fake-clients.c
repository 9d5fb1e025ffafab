#include "fake-clients.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/base.h>

#include "workload.h"

#define ANSWER_TIMEOUT_MS 30000

/* By level; Guaranteed pods have no folder of their class. */
static const char *const classes[] = {"/besteffort", "/burstable", ""};

static void pod_folder(const struct fake_clients *fake, char out[512], unsigned pod, unsigned depth)
{
	size_t n = (size_t)snprintf(out, 512, "%.200s", fake->root);

	if (depth > 0)
		n += (size_t)snprintf(out + n, 512 - n, "/kubepods");
	if (depth > 1)
		n += (size_t)snprintf(out + n, 512 - n, "%s", classes[pod % countof(classes)]);
	if (depth > 2)
		n += (size_t)snprintf(out + n, 512 - n, "/pod00000000-0000-0000-0000-%012x", pod);
	if (depth > 3)
		snprintf(out + n, 512 - n, "/%064x", pod + 1);
}

static void enter_cgroup(const struct fake_clients *fake, unsigned pod)
{
	char path[512], procs[540], pid[16];

	for (unsigned depth = 0; depth <= 4; depth++) {
		pod_folder(fake, path, pod, depth);
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			workload_fail("%s: %s", path, strerror(errno));
	}
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	cleanup(closep) int fd = open(procs, O_WRONLY | O_CLOEXEC);
	int n = snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (fd < 0 || write(fd, pid, (size_t)n) != n)
		workload_fail("%s: %s", path, strerror(errno));
}

static int connect_agent(void)
{
	const char *path = getenv("WEIR_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (!path || strlen(path) >= sizeof(address.sun_path))
		workload_fail("WEIR_SOCKET is no path of a socket");
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		workload_fail("%s: %s", path, strerror(errno));
	return fd;
}

/* A pod's process: it sends its connections to the measuring process, and waits to be killed. */
static _Noreturn void be_pod(const struct fake_clients *fake, unsigned pod, unsigned clients,
			     int out)
{
	struct weir_hello empty = {0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	enter_cgroup(fake, pod);
	weir_header_init(&empty.header, WEIR_HELLO, sizeof(empty));
	for (unsigned i = 0; i < clients; i++) {
		cleanup(closep) int fd = connect_agent();
		if (weir_message_send(out, &empty, sizeof(empty), &fd, 1) < 0)
			_exit(1);
	}
	for (;;)
		pause();
}

/* A packet with descriptors, of any type; how many. */
static size_t take_packet(int fd, union weir_message *out, int *fds)
{
	union weir_message packet = {0};
	char control[CMSG_SPACE(WEIR_FDS_MAX * sizeof(int))];
	struct iovec bytes = {&packet, sizeof(packet)};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct pollfd wait = {fd, POLLIN, 0};

	if (poll(&wait, 1, ANSWER_TIMEOUT_MS) != 1 || recvmsg(fd, &message, MSG_CMSG_CLOEXEC) <= 0)
		workload_fail("no message: %s", strerror(errno));
	*out = packet;
	if (packet.header.type == WEIR_REFUSED)
		workload_fail("refused: %.100s", packet.refused.text);
	const struct cmsghdr *part = CMSG_FIRSTHDR(&message);
	size_t n = part ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (n)
		memcpy(fds, CMSG_DATA(part), n * sizeof(int));
	return n;
}

static void *map_page(int fd)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		workload_fail("a page: %s", strerror(errno));
	return page;
}

static void join(struct fake_client *client)
{
	struct weir_hello hello = {.claimed_bit = WEIR_BIT_NONE, .library = WEIR_VERSION};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	CUuuid uuid;

	CU(cuDeviceGetUuid(&uuid, (CUdevice)client->gpu));
	memcpy(hello.gpu, uuid.bytes, sizeof(hello.gpu));
	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	if (weir_message_send(client->socket, &hello, sizeof(hello), NULL, 0) < 0)
		workload_fail("the agent takes no message");
	size_t n = take_packet(client->socket, &message, fds);
	if (message.header.type != WEIR_WELCOME || n < 2)
		workload_fail("the agent's answer is of type %u", message.header.type);
	client->level = message.welcome.level;
	client->control = map_page(fds[0]);
	client->status = map_page(fds[1]);
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

void fake_clients_start(struct fake_clients *fake, const char *root, unsigned pods,
			unsigned clients)
{
	int gpus = 0, fd;

	CU(cuDeviceGetCount(&gpus));
	fake->root = root;
	for (unsigned pod = 0; pod < pods; pod++) {
		unsigned n = clients / pods + (pod < clients % pods);
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
			workload_fail("socketpair: %s", strerror(errno));
		fake->pods[pod] = fork();
		if (fake->pods[pod] < 0)
			workload_fail("fork: %s", strerror(errno));
		if (fake->pods[pod] == 0)
			be_pod(fake, pod, n, pair[1]);
		fake->n_pods++;
		close(pair[1]);
		while (n--) {
			union weir_message message;
			if (take_packet(pair[0], &message, &fd) != 1)
				workload_fail("a pod has no connection");
			struct fake_client *client = &fake->clients[fake->n];
			*client = (struct fake_client){.pod = pod,
						       .gpu = (unsigned)fake->n % (unsigned)gpus,
						       .socket = fd};
			join(client);
			fake->n++;
		}
		close(pair[0]);
	}
}

void fake_clients_stop(struct fake_clients *fake)
{
	char path[512];

	for (unsigned pod = 0; pod < fake->n_pods; pod++) {
		kill(fake->pods[pod], SIGKILL);
		waitpid(fake->pods[pod], NULL, 0);
	}
	for (unsigned depth = 4; depth >= 3; depth--) {
		for (unsigned pod = 0; pod < fake->n_pods; pod++) {
			pod_folder(fake, path, pod, depth);
			rmdir(path);
		}
	}
	for (int depth = 2; depth >= 0; depth--) {
		for (unsigned class = 0; class < countof(classes); class ++) {
			pod_folder(fake, path, class, (unsigned)depth);
			rmdir(path);
		}
	}
}
