/* The channel groups of a context: one for compute, and one for a copy engine. If the resource
 * manager cannot be had here, the context has a group without a name. Under MPS the server has the
 * compute group, and all its clients belong to it. */
#include "simcuda/driver/exec.h"

#include "simcuda/machine/rm-client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct rm_client rm = RM_CLIENT_INIT;

/* The connection to the daemon says that this client lives. */
static struct {
	bool tried;
	int fd;
	uint64_t device, inode; /* of the pipe directory */
} mps = {.fd = -1};

const char *mps_folder(void)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return folder ? folder : "/tmp/nvidia-mps";
}

/* Whoever answers has started a server. A plain file named `control` is a daemon that only shows.
 */
static bool mps_enter(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	char answer;

	if (mps.tried)
		return mps.fd >= 0;
	mps.tried = true;
	/* The socket tells whose server it is: there may be other folders with links to it. */
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/control",
			     mps_folder()) >= sizeof(address.sun_path) ||
	    stat(address.sun_path, &st) < 0)
		return false;
	mps.device = st.st_dev;
	mps.inode = st.st_ino;
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    send(fd, "sim_client\n", 11, MSG_NOSIGNAL) == 11 && read(fd, &answer, 1) == 1)
		mps.fd = take_fd(fd);
	return mps.fd >= 0;
}

void channels_forked(void)
{
	if (mps.fd >= 0)
		close(mps.fd);
	mps.fd = -1;
}

void channels_trap(void)
{
	if (rm.client)
		machine_rm_trap(&sim.machine, false);
}

void channels_new(struct context *ctx)
{
	uint32_t gpu = ctx->device->gpu;
	bool have = rm_client_open(&rm, &sim.machine, gpu);

	ctx->group = MACHINE_GROUPS;
	if (mps_enter())
		ctx->group = machine_server_join(&sim.machine, gpu, mps.device, mps.inode);
	if (have && ctx->group == MACHINE_GROUPS) {
		ctx->channels.compute = rm_client_compute(&rm, gpu);
		ctx->group = machine_rm_group(&sim.machine, rm.client, ctx->channels.compute);
	}
	if (have)
		ctx->channels.copy = rm_client_copy(&rm, gpu);
	if (ctx->group == MACHINE_GROUPS)
		ctx->group = machine_group_new(&sim.machine, gpu);
}

void channels_free(struct context *ctx)
{
	rm_client_free(&rm, ctx->device->gpu, ctx->channels.copy);
	rm_client_free(&rm, ctx->device->gpu, ctx->channels.compute);
	machine_group_free(&sim.machine, ctx->group);
}
