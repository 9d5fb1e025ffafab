#include "daemon/doors.h"

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
static void open_door(struct agent *agent, const struct gpu *gpu, server_accept_fn *accepted)
{
	struct doors *doors = &agent->doors;
	struct door *door = &doors->all[doors->n];
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/agent.sock", doors->dir, gpu->id);
	*door = (struct door){.agent = agent, .gpu = gpu};
	if (server_init(&door->server, &agent->loop, path, SOCK_SEQPACKET, 0666, accepted) == 0)
		doors->n++;
}

int doors_init(struct agent *agent, server_accept_fn *accepted)
{
	struct doors *doors = &agent->doors;
	char common[PATH_MAX];

	snprintf(common, sizeof(common), "%s", agent->config.socket);
	*doors = (struct doors){.all = calloc(GPUS_MAX, sizeof(*doors->all)),
				.dir = strdup(dirname(common))};
	if (!doors->all || !doors->dir)
		return error_origin(-ENOMEM);
	for (const struct gpu *gpu = agent->gpus.all; gpu; gpu = gpu->hh.next)
		if (gpu->listed && doors->n < GPUS_MAX)
			open_door(agent, gpu, accepted);
	return 0;
}

void doors_deinit(struct doors *doors)
{
	for (unsigned i = 0; i < doors->n; i++)
		server_deinit(&doors->all[i].server);
	free(doors->all);
	free(doors->dir);
	*doors = (struct doors){0};
}

void doors_mark(const struct doors *doors)
{
	for (unsigned i = 0; i < doors->n; i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s/" WEIR_LIMITED_NAME, doors->dir,
			 doors->all[i].gpu->id);
		cleanup(closep) int fd =
			open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
		if (fd < 0)
			log_limited(LOG_ERROR, 60,
				    "%s: %s; its pods have no limit of memory "
				    "without an agent",
				    path, strerror(errno));
	}
}
