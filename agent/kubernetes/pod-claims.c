#include "kubernetes/pod-claims.h"

#include <errno.h>
#include <fcntl.h>

#include "weir/base.h"
#include "weir/file.h"
#include "weir/log.h"

static bool apply_container(struct pod_container *container, const char *namespace_,
			    const struct claims *claims)
{
	uint32_t share = 0;
	uint64_t memory = 0;

	for (size_t i = 0; i < POD_CLAIMS_MAX && *container->claims[i]; i++) {
		const struct claim *claim = claims_named(claims, namespace_, container->claims[i]);
		for (size_t d = 0; claim && d < claim->n; d++) {
			const struct claim_device *device = &claim->devices[d];
			if (!share || device->shares < share)
				share = device->shares;
			if (!memory || device->memory < memory)
				memory = device->memory;
		}
	}
	/* The device plugin's shares, if it has any, are known without this. */
	if (!share || (container->share == share && container->claimed == memory))
		return false;
	container->share = share;
	container->claimed = memory;
	return true;
}

bool pod_claims_apply(struct pod *pod, const struct claims *claims)
{
	bool changed = false;

	for (size_t i = 0; i < pod->n_containers; i++) {
		struct pod_container *container = &pod->containers[i];
		changed |= apply_container(container, pod->namespace_, claims);
		if (container->share && (!pod->least_share || container->share < pod->least_share))
			pod->least_share = container->share;
	}
	return changed;
}

/* A file that cannot be read now leaves the claims as they were. */
static void load(struct pod_claims *claims)
{
	cleanup(closep) int fd = file_open(AT_FDCWD, claims->path, O_RDONLY);
	struct claims next;
	size_t size;
	cleanup(freep) char *text = file_load(fd, CLAIMS_FILE_MAX, &size);

	if (fd == -ENOENT)
		return;
	if (!text || claims_parse(&next, text, size) < 0) {
		log_limited(LOG_WARNING, 60, "%s: not the claims of a node", claims->path);
		return;
	}
	claims_deinit(&claims->claims);
	claims->claims = next;
}

static void file_changed(struct file_watch *watch)
{
	struct pod_claims *claims = container_of(watch, struct pod_claims, watch);

	load(claims);
	claims->changed(claims);
}

int pod_claims_init(struct pod_claims *claims, struct loop *loop, const char *path,
		    pod_claims_fn *changed)
{
	*claims = (struct pod_claims){.path = path, .changed = changed};
	if (!*path)
		return 0;
	int r = file_watch_init(&claims->watch, loop, path, file_changed);
	if (r == 0)
		load(claims);
	return r;
}

void pod_claims_deinit(struct pod_claims *claims)
{
	file_watch_deinit(&claims->watch);
	claims_deinit(&claims->claims);
}
