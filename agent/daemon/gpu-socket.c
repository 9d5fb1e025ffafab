#include "daemon/gpu-socket.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "shm/memory.h"

#include "weir/base.h"
#include "weir/error.h"

int gpu_sockets_init(struct gpu_sockets *sockets, struct loop *loop, const struct gpus *gpus,
		     const char *path, server_accept_fn *accepted)
{
	char common[PATH_MAX];

	snprintf(common, sizeof(common), "%s", path);
	*sockets = (struct gpu_sockets){.all = calloc(GPUS_MAX, sizeof(*sockets->all)),
					.dir = strdup(dirname(common))};
	if (!sockets->all || !sockets->dir)
		return error_origin(-ENOMEM);
	for (const struct gpu *gpu = gpus->all; gpu && sockets->n < GPUS_MAX; gpu = gpu->hh.next) {
		struct gpu_socket *socket = &sockets->all[sockets->n];
		char own[PATH_MAX];
		if (!gpu->listed)
			continue;
		snprintf(own, sizeof(own), "%s/%s/agent.sock", sockets->dir, gpu->id);
		*socket = (struct gpu_socket){.sockets = sockets, .gpu = gpu};
		/* server_init() logs what fails; that GPU has no socket then. */
		if (server_init(&socket->server, loop, own, SOCK_SEQPACKET, 0666, accepted) == 0)
			sockets->n++;
	}
	return 0;
}

void gpu_sockets_deinit(struct gpu_sockets *sockets)
{
	for (unsigned i = 0; i < sockets->n; i++)
		server_deinit(&sockets->all[i].server);
	free(sockets->all);
	free(sockets->dir);
	*sockets = (struct gpu_sockets){0};
}

void gpu_sockets_mark(const struct gpu_sockets *sockets)
{
	for (unsigned i = 0; i < sockets->n; i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s/" WEIR_LIMITED_NAME, sockets->dir,
			 sockets->all[i].gpu->id);
		memories_mark(path);
	}
}
