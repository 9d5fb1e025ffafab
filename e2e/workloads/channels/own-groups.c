#include "own-groups.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "weir/rm.h"

struct own_groups own_groups = {.fd = -1};

static void see_group(int fd, const struct rm_alloc *made)
{
	const struct rm_channel_group_params *params = (const void *)(uintptr_t)made->params;
	struct channel_group *compute = &own_groups.compute;

	if (!params)
		return;
	if (params->engine != RM_ENGINE_COMPUTE) {
		own_groups.copy = made->object;
		return;
	}
	own_groups.fd = fd;
	compute->client = made->client;
	compute->group = made->object;
	compute->n_channels = 0;
}

static void see(int fd, const struct rm_alloc *made)
{
	struct channel_group *compute = &own_groups.compute;

	if (made->class == RM_CLASS_SUBDEVICE && !compute->group)
		compute->subdevice = made->object;
	else if (made->class == RM_CLASS_CHANNEL_GROUP)
		see_group(fd, made);
	else if (RM_CLASS_IS_CHANNEL(made->class) && made->parent == compute->group &&
		 compute->n_channels < CHANNEL_GROUP_CHANNELS)
		compute->channels[compute->n_channels++] = made->object;
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, void *);
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	if (!next)
		next = (int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT, "ioctl");
	int r = next(fd, request, argument);
	if (r == 0 && _IOC_TYPE(request) == RM_IOCTL_TYPE && _IOC_NR(request) == RM_IOCTL_ALLOC &&
	    _IOC_SIZE(request) == sizeof(struct rm_alloc))
		see(fd, argument);
	return r;
}
