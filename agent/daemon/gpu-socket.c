#include "daemon/gpu-socket.h"

#include "daemon/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

/* One that cannot be opened is said there. */
static void open_socket(struct agent *agent, const struct gpu *gpu, server_accept_fn *accepted)
{
	struct gpu_sockets *sockets = &agent->gpu_sockets;
	struct gpu_socket *socket = &sockets->all[sockets->n];
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/agent.sock", sockets->dir, gpu->id);
	*socket = (struct gpu_socket){.agent = agent, .gpu = gpu};
	if (server_init(&socket->server, &agent->loop, path, SOCK_SEQPACKET, 0666, accepted) == 0)
		sockets->n++;
}

int gpu_sockets_init(struct agent *agent, server_accept_fn *accepted)
{
	struct gpu_sockets *sockets = &agent->gpu_sockets;
	char common[PATH_MAX];

	snprintf(common, sizeof(common), "%s", agent->config.socket);
	*sockets = (struct gpu_sockets){.all = calloc(GPUS_MAX, sizeof(*sockets->all)),
					.dir = strdup(dirname(common))};
	if (!sockets->all || !sockets->dir)
		return error_origin(-ENOMEM);
	for (const struct gpu *gpu = agent->gpus.all; gpu; gpu = gpu->hh.next)
		if (gpu->listed && sockets->n < GPUS_MAX)
			open_socket(agent, gpu, accepted);
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
		cleanup(closep) int fd =
			open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
		if (fd < 0)
			log_limited(LOG_ERROR, 60,
				    "%s: %s; its pods have no limit of memory "
				    "without an agent",
				    path, strerror(errno));
	}
}
