#include "shim/ioctl.h"

#include "shim/shim.h"
#include "shim/thread.h"
#include "shim/weak-libc.h"

#include "weir/log.h"
#include "weir/rm.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define GROUPS     1024
#define SUBDEVICES 256

struct record {
	struct channel_group group; /* group.group 0: free */
	uint32_t device;
	int fd;
	pid_t maker; /* until the context is known */
	const void *context;
};

static struct {
	pthread_mutex_t lock; /* never held over a call of the driver */
	struct record groups[GROUPS];
	size_t n_groups; /* used places are below */
	struct {
		uint32_t client, device, subdevice;
	} subdevices[SUBDEVICES]; /* client 0: free */
	_Atomic uint32_t changes;
	void (*notify)(void);
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What libc's function does by itself. */
static int system_ioctl(int fd, unsigned long request, void *argument)
{
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

typedef int ioctl_fn(int fd, unsigned long request, void *argument);

/* Another library may watch ioctls, too. */
static ioctl_fn *next_ioctl(void)
{
	static _Atomic(ioctl_fn *) next;
	ioctl_fn *found = load_acquire(&next);

	if (found)
		return found;
	if (weak_libc_bind_loader() && weak_libc.dlsym == dlsym)
		found = (ioctl_fn *)dlsym(RTLD_NEXT, "ioctl");
	found = found ? found : system_ioctl;
	store_release(&next, found);
	return found;
}

static struct record *find(uint32_t client, uint32_t group)
{
	for (size_t i = 0; i < state.n_groups; i++) {
		struct record *record = &state.groups[i];
		if (record->group.group && record->group.group == group &&
		    record->group.client == client)
			return record;
	}
	return NULL;
}

static uint32_t subdevice_of(uint32_t client, uint32_t device)
{
	for (size_t i = 0; i < SUBDEVICES; i++)
		if (state.subdevices[i].client == client && state.subdevices[i].device == device)
			return state.subdevices[i].subdevice;
	return 0;
}

static void subdevice_made(const struct rm_alloc *made)
{
	for (size_t i = 0; i < SUBDEVICES; i++) {
		if (state.subdevices[i].client)
			continue;
		state.subdevices[i].client = made->client;
		state.subdevices[i].device = made->parent;
		state.subdevices[i].subdevice = made->object;
		return;
	}
}

static void group_made(int fd, const struct rm_alloc *made)
{
	const struct rm_channel_group_params *params = (const void *)(uintptr_t)made->params;
	size_t i = 0;

	if (!params || (made->params_size && made->params_size < sizeof(*params)) ||
	    params->engine != RM_ENGINE_COMPUTE)
		return;
	while (i < state.n_groups && state.groups[i].group.group)
		i++;
	if (i == GROUPS) {
		log_limited(LOG_WARNING, 3600,
			    "more than %d channel groups: no hardware "
			    "preemption for the others",
			    GROUPS);
		return;
	}
	state.groups[i] = (struct record){
		.group = {.client = made->client,
			  .subdevice = subdevice_of(made->client, made->parent),
			  .group = made->object},
		.device = made->parent,
		.fd = fd,
		.maker = gettid(),
	};
	if (i == state.n_groups)
		state.n_groups++;
}

static void channel_made(const struct rm_alloc *made)
{
	struct record *record = find(made->client, made->parent);

	if (!record)
		return;
	if (record->group.n_channels == CHANNEL_GROUP_CHANNELS) {
		log_limited(LOG_WARNING, 3600,
			    "more than %u channels in a group: the others are not stopped with it",
			    CHANNEL_GROUP_CHANNELS);
		return;
	}
	record->group.channels[record->group.n_channels++] = made->object;
	add_relaxed(&state.changes, 1);
}

static void allocated(int fd, const struct rm_alloc *made)
{
	locked(&state.lock);
	if (made->class == RM_CLASS_SUBDEVICE)
		subdevice_made(made);
	else if (made->class == RM_CLASS_CHANNEL_GROUP)
		group_made(fd, made);
	else
		channel_made(made);
}

static void channel_freed(struct channel_group *group, uint32_t channel)
{
	for (uint32_t i = 0; i < group->n_channels; i++) {
		if (group->channels[i] != channel)
			continue;
		group->channels[i] = group->channels[--group->n_channels];
		group->channels[group->n_channels] = 0;
		add_relaxed(&state.changes, 1);
	}
}

/* Objects go with their parents. */
static void freed(const struct rm_free *gone)
{
	locked(&state.lock);
	for (size_t i = 0; i < SUBDEVICES; i++) {
		if (state.subdevices[i].client == gone->client &&
		    (gone->object == gone->client || gone->object == state.subdevices[i].device ||
		     gone->object == state.subdevices[i].subdevice))
			state.subdevices[i].client = 0;
	}
	for (size_t i = 0; i < state.n_groups; i++) {
		struct record *record = &state.groups[i];
		if (!record->group.group || record->group.client != gone->client)
			continue;
		channel_freed(&record->group, gone->object);
		if ((gone->object != gone->client && gone->object != record->device &&
		     gone->object != record->group.group))
			continue;
		record->group.group = 0;
		add_relaxed(&state.changes, 1);
	}
}

static bool is_watched(uint32_t class)
{
	return class == RM_CLASS_SUBDEVICE || class == RM_CLASS_CHANNEL_GROUP ||
	       RM_CLASS_IS_CHANNEL(class);
}

static void watch_alloc(int fd, size_t size, const void *argument)
{
	struct rm_alloc made;

	if (size == sizeof(struct rm_alloc)) {
		made = *(const struct rm_alloc *)argument;
	} else if (size == sizeof(struct rm_alloc_short)) {
		const struct rm_alloc_short *old = argument;
		made = (struct rm_alloc){.client = old->client,
					 .parent = old->parent,
					 .object = old->object,
					 .class = old->class,
					 .params = old->params,
					 .params_size = old->params_size,
					 .status = old->status};
	} else {
		return;
	}
	if (made.status == RM_OK && is_watched(made.class))
		allocated(fd, &made);
}

void channel_groups_watch(int fd, unsigned long request, const void *argument)
{
	if (_IOC_TYPE(request) != RM_IOCTL_TYPE)
		return;
	int saved = errno;
	uint32_t before = load_relaxed(&state.changes);

	if (_IOC_NR(request) == RM_IOCTL_ALLOC)
		watch_alloc(fd, _IOC_SIZE(request), argument);
	else if (_IOC_NR(request) == RM_IOCTL_FREE && _IOC_SIZE(request) == sizeof(struct rm_free))
		freed(argument);
	if (state.notify && load_relaxed(&state.changes) != before)
		state.notify();
	errno = saved;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	int r = next_ioctl()(fd, request, argument);
	if (r == 0)
		channel_groups_watch(fd, request, argument);
	return r;
}

void channel_groups_bind(const void *context)
{
	pid_t self = gettid();

	locked(&state.lock);
	for (size_t i = 0; i < state.n_groups; i++) {
		struct record *record = &state.groups[i];
		if (!record->group.group || record->context || record->maker != self)
			continue;
		record->context = context;
		add_relaxed(&state.changes, 1);
	}
}

void channel_groups_notify(void (*changed)(void))
{
	state.notify = changed;
}

uint32_t channel_groups_changes(void)
{
	return load_acquire(&state.changes);
}

bool channel_groups_next(const void *context, size_t *at, struct channel_group *group, int *fd)
{
	locked(&state.lock);
	for (; *at < state.n_groups; (*at)++) {
		const struct record *record = &state.groups[*at];
		if (!record->group.group || record->context != context ||
		    !record->group.subdevice || !record->group.n_channels)
			continue;
		*group = record->group;
		*fd = record->fd;
		(*at)++;
		return true;
	}
	return false;
}

void channel_groups_fork(void)
{
	pthread_mutex_init(&state.lock, NULL);
	state.n_groups = 0;
}
