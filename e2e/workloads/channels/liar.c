/* Tells an agent a lie about its channel group, as a hostile tenant may, and stays until it is to
 * stop. The program must not have libweir preloaded. Or, with --contexts and libweir, it makes so
 * many contexts, one after the other.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/protocol.h"

#include "own-groups.h"
#include "workload.h"

#define PATIENCE_MS 20000

static const char nothing_ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
				  ".visible .entry nothing()\n{\n\tret;\n}\n";

/* Another process's, and that process. */
static struct own_groups other;
static pid_t child;

static void lie_random(struct own_groups *told, struct workload *w)
{
	struct random random = {w->seed};
	struct channel_group *group = &told->compute;

	group->client = (uint32_t)random_next(&random);
	group->subdevice = (uint32_t)random_next(&random);
	group->group = (uint32_t)random_next(&random);
	group->n_channels = 1 + random_below(&random, CHANNEL_GROUP_CHANNELS);
	for (uint32_t i = 0; i < group->n_channels; i++)
		group->channels[i] = (uint32_t)random_next(&random);
}

static void lie_freed(struct own_groups *told, struct workload *w)
{
	CUcontext context;

	CU(cuCtxCreate(&context, NULL, 0, w->device));
	*told = own_groups;
	CU(cuCtxDestroy(context));
}

static void lie_others_handles(struct own_groups *told, struct workload *w)
{
	(void)w;
	told->compute = other.compute;
}

static void lie_others_descriptor(struct own_groups *told, struct workload *w)
{
	(void)w;
	told->fd = other.fd;
}

static void lie_other(struct own_groups *told, struct workload *w)
{
	(void)w;
	*told = other;
}

static void lie_pipe(struct own_groups *told, struct workload *w)
{
	int ends[2];

	(void)w;
	if (pipe(ends) < 0)
		workload_fail("no pipe");
	told->fd = ends[0];
}

static void lie_memory_file(struct own_groups *told, struct workload *w)
{
	(void)w;
	told->fd = memfd_create("no-device", MFD_CLOEXEC);
}

static void lie_other_device(struct own_groups *told, struct workload *w)
{
	(void)w;
	told->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void lie_copy_engine(struct own_groups *told, struct workload *w)
{
	(void)w;
	told->compute.group = told->copy;
}

static void lie_channel(struct own_groups *told, struct workload *w)
{
	(void)w;
	told->compute.group = told->compute.channels[0];
}

static void lie_others_channels(struct own_groups *told, struct workload *w)
{
	(void)w;
	memcpy(told->compute.channels, other.compute.channels, sizeof(other.compute.channels));
}

/* No lie. */
static void tell_truth(struct own_groups *told, struct workload *w)
{
	(void)told;
	(void)w;
}

static const struct lie {
	const char *name;
	void (*tell)(struct own_groups *told, struct workload *w); /* @told: the truth at first */
	bool closes; /* its descriptor, as soon as it is sent */
} lies[] = {
	{"random", lie_random, false},
	{"freed", lie_freed, false},
	{"others-handles", lie_others_handles, false},
	{"others-descriptor", lie_others_descriptor, false},
	{"others-channels", lie_others_channels, false},
	{"other", lie_other, false},
	{"pipe", lie_pipe, false},
	{"memory-file", lie_memory_file, false},
	{"other-device", lie_other_device, false},
	{"copy-engine", lie_copy_engine, false},
	{"channel", lie_channel, false},
	{"closed", tell_truth, true},
};

static struct weir_channels message_of(const struct own_groups *groups)
{
	struct weir_channels message = {.group = groups->compute};

	weir_header_init(&message.header, WEIR_CHANNELS, sizeof(message));
	return message;
}

static void send_groups(int socket, const struct own_groups *groups)
{
	struct weir_channels message = message_of(groups);

	if (weir_message_send(socket, &message, sizeof(message), &groups->fd, 1) < 0)
		workload_fail("cannot send a channel group");
}

static void receive(int socket, union weir_message *message, int *fds)
{
	struct pollfd come = {.fd = socket, .events = POLLIN};
	size_t n;

	if (poll(&come, 1, PATIENCE_MS) != 1 || weir_message_receive(socket, message, fds, &n) != 0)
		workload_fail("no answer");
}

/* In a child, which lives as long as this process. */
static _Noreturn void be_other(int socket, struct workload *w)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	workload_open(w, NULL);
	send_groups(socket, &own_groups);
	for (;;)
		pause();
}

/* Before the driver is used. */
static void find_other(struct workload *w)
{
	union weir_message message;
	int ends[2], fds[WEIR_FDS_MAX];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		workload_fail("no socket");
	child = fork();
	if (child < 0)
		workload_fail("no child");
	if (child == 0)
		be_other(ends[1], w);
	receive(ends[0], &message, fds);
	other = (struct own_groups){.fd = fds[0], .compute = message.channels.group};
}

static int join(const char *path, CUdevice device)
{
	struct weir_hello hello = {.claimed_bit = WEIR_BIT_NONE};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[WEIR_FDS_MAX];
	union weir_message welcome;

	CU(cuDeviceGetUuid((CUuuid *)hello.gpu, device));
	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    weir_message_send(fd, &hello, sizeof(hello), NULL, 0) < 0)
		workload_fail("cannot speak to the agent");
	receive(fd, &welcome, fds);
	if (welcome.header.type != WEIR_WELCOME)
		workload_fail("the agent does not let it in");
	return fd;
}

static void tell(struct workload *w, const struct lie *lie, const char *path)
{
	find_other(w);
	workload_open(w, NULL);
	if (own_groups.fd < 0)
		workload_fail("no channel group was made");
	struct own_groups told = own_groups;
	lie->tell(&told, w);
	send_groups(join(path, w->device), &told);
	if (lie->closes)
		close(told.fd);
	workload_ready(w);
	while (!workload_stopped(w) && waitpid(child, NULL, WNOHANG) == 0)
		usleep(1000);
}

/* Each has a launch: before that an agent hears nothing of it. */
static void use_context(CUdevice device)
{
	CUcontext context;
	CUmodule module;
	CUfunction function;

	CU(cuCtxCreate(&context, NULL, 0, device));
	CU(cuModuleLoadData(&module, nothing_ptx));
	CU(cuModuleGetFunction(&function, module, "nothing"));
	CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	CU(cuCtxDestroy(context));
}

static void use_contexts(struct workload *w, uint64_t n)
{
	workload_open(w, NULL);
	workload_ready(w);
	for (uint64_t i = 0; i < n; i++)
		use_context(w->device);
}

static const struct lie *find_lie(const char *name)
{
	for (size_t i = 0; i < countof(lies); i++)
		if (strcmp(lies[i].name, name) == 0)
			return &lies[i];
	workload_fail("no such lie: '%s'", name);
}

int main(int argc, char **argv)
{
	const char *name = "", *path = "";
	uint64_t contexts = 0;
	const struct workload_option own[] = {
		{"lie", OPTION_TEXT, &name, "which one"},
		{"socket", OPTION_TEXT, &path, "the agent's"},
		{"contexts", OPTION_NUMBER, &contexts, "to make, use and destroy"},
		{0},
	};
	struct workload w = {.seed = 1};

	workload_parse(&w, argc, argv, "lies to an agent about its channel group", own);
	if (contexts)
		use_contexts(&w, contexts);
	else
		tell(&w, find_lie(name), path);
	puts("channel-liar: ok");
	fflush(stdout);
	_exit(0); /* an orderly end would use the descriptor that was closed */
}
