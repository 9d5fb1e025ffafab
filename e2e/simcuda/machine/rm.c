/* The kernel driver's resource manager (weir/rm.h), as much of it as channel groups need.
 *
 * The real one knows a client by the open file that made it. Here that is the inode of the
 * process's device node (rm-node.c). Objects lie in the shared file, in the row of the process that
 * made their client, so any process that has a descriptor of the same node may name them. They end
 * with that process; the close of a descriptor cannot be seen. */
#include "simcuda/machine/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/rm.h"

/* nvstatuscodes.h */
enum {
	RM_DUPLICATE = 0x19,
	RM_NO_RESOURCES = 0x1a,
	RM_NO_PERMISSION = 0x1b,
	RM_BAD_ADDRESS = 0x1e,
	RM_BAD_ARGUMENT = 0x1f,
	RM_BAD_CLASS = 0x22,
	RM_BAD_CLIENT = 0x23,
	RM_BAD_DEVICE = 0x26,
	RM_BAD_PARENT = 0x36,
	RM_BAD_SIZE = 0x3a,
	RM_NOT_SUPPORTED = 0x56,
	RM_NOT_FOUND = 0x57,
};

#define CLASS_CLIENT 0x41u
#define CLASS_DEVICE 0x80u
/* The resource manager chooses the handles of clients. The lowest bits are the process. */
#define CLIENT_BASE  0xc1d00000u
#define CLIENT_MASK  0xfff00000u
#define LEAVE_NS     UINT64_C(10000000000) /* blocks of a disabled group need a moment to stop */
#define OBJECT_FIRST 0x5c000001u           /* where it chooses the handle of an object */

struct call {
	struct machine *m;
	uint64_t device, inode;
	uint32_t process; /* whose row */
	uint32_t client;
	const struct shared_object *stopped; /* the compute group that the call has stopped */
};

static bool copy(bool out, uint64_t remote, void *local, size_t size)
{
	struct iovec here = {local, size}, there = {(void *)(uintptr_t)remote, size};
	ssize_t n = out ? process_vm_writev(getpid(), &here, 1, &there, 1, 0)
			: process_vm_readv(getpid(), &here, 1, &there, 1, 0);

	return n == (ssize_t)size;
}

static bool copy_in(void *local, uint64_t remote, size_t size)
{
	return copy(false, remote, local, size);
}

static bool copy_out(uint64_t remote, void *local, size_t size)
{
	return copy(true, remote, local, size);
}

static struct shared_object *row(const struct call *call)
{
	return call->m->shared->objects[call->process];
}

static struct shared_object *find(const struct call *call, uint32_t handle)
{
	struct shared_object *objects = row(call);

	for (uint32_t i = 0; i < call->m->shared->processes[call->process].objects; i++)
		if (objects[i].class && objects[i].client == call->client &&
		    objects[i].handle == handle)
			return &objects[i];
	return NULL;
}

static struct shared_object *find_class(const struct call *call, uint32_t handle, uint32_t class)
{
	struct shared_object *object = find(call, handle);

	return object && object->class == class ? object : NULL;
}

/* Makes @client the call's. It belongs to one descriptor. */
static uint32_t enter(struct call *call, uint32_t client)
{
	const struct shared_object *object;

	call->client = client;
	call->process = client % MACHINE_PROCESSES;
	if ((client & CLIENT_MASK) != CLIENT_BASE)
		return RM_BAD_CLIENT;
	if (call->process != call->m->self && shared_dead(call->m, call->process))
		shared_forget(call->m->shared, call->process);
	object = find_class(call, client, CLASS_CLIENT);
	if (!object || object->device != call->device || object->inode != call->inode)
		return RM_BAD_CLIENT;
	return RM_OK;
}

static struct shared_object *new_object(struct call *call)
{
	uint32_t *n = &call->m->shared->processes[call->process].objects;
	struct shared_object *objects = row(call);

	for (uint32_t i = 0; i < *n; i++)
		if (!objects[i].class)
			return &objects[i];
	return *n < MACHINE_OBJECTS ? &objects[(*n)++] : NULL;
}

/* A compute group is stopped when all its channels are disabled. */
static void update(struct call *call, uint32_t handle)
{
	struct shared_object *objects = row(call), *group = find(call, handle);
	uint32_t channels = 0, disabled = 0;

	if (!group || !group->group)
		return;
	for (uint32_t i = 0; i < MACHINE_OBJECTS; i++)
		if (RM_CLASS_IS_CHANNEL(objects[i].class) && objects[i].client == call->client &&
		    objects[i].parent == handle) {
			channels++;
			disabled += objects[i].disabled;
		}
	bool stop = channels && channels == disabled;
	struct shared_group *compute =
		&call->m->shared->processes[call->process].groups[group->group - 1];
	shared_count_use(compute);
	shared_start_stop(compute, stop);
	call->stopped = stop ? group : NULL;
	shared_moved(&call->m->shared->gpus[group->gpu]);
}

static void remove_object(struct call *call, struct shared_object *object)
{
	struct shared_object gone = *object;

	object->class = 0;
	if (gone.group) {
		struct shared_group *group =
			&call->m->shared->processes[call->process].groups[gone.group - 1];

		group->named = 0;
		shared_count_use(group);
		shared_start_stop(group, false);
		shared_moved(&call->m->shared->gpus[gone.gpu]);
	}
	if (RM_CLASS_IS_CHANNEL(gone.class))
		update(call, gone.parent);
}

static void remove_orphans(struct call *call)
{
	struct shared_object *objects = row(call);

	for (uint32_t i = 0; i < MACHINE_OBJECTS; i++) {
		if (!objects[i].class || objects[i].client != call->client ||
		    objects[i].class == CLASS_CLIENT || find(call, objects[i].parent))
			continue;
		remove_object(call, &objects[i]);
		i = UINT32_MAX; /* from the beginning: it may have had children */
	}
}

static uint32_t do_free(struct call *call, const struct rm_free *p)
{
	uint32_t status = enter(call, p->client);
	struct shared_object *object = status ? NULL : find(call, p->object);

	if (status)
		return status;
	if (!object)
		return RM_NOT_FOUND;
	remove_object(call, object);
	remove_orphans(call);
	return RM_OK;
}

static uint32_t new_client(struct call *call, struct rm_alloc *p)
{
	struct shared *s = call->m->shared;
	struct shared_object *object;

	call->process = call->m->self;
	object = new_object(call);
	if (!object)
		return RM_NO_RESOURCES;
	call->client = CLIENT_BASE +
		       ++s->clients % (0x100000 / MACHINE_PROCESSES) * MACHINE_PROCESSES +
		       call->process;
	*object = (struct shared_object){.client = call->client,
					 .handle = call->client,
					 .class = CLASS_CLIENT,
					 .device = call->device,
					 .inode = call->inode};
	p->object = call->client;
	return RM_OK;
}

static bool fits(uint32_t parent, uint32_t class)
{
	switch (class) {
	case CLASS_DEVICE:
		return parent == CLASS_CLIENT;
	case RM_CLASS_SUBDEVICE:
	case RM_CLASS_CHANNEL_GROUP:
		return parent == CLASS_DEVICE;
	default:
		return parent == RM_CLASS_CHANNEL_GROUP || parent == CLASS_DEVICE;
	}
}

/* What its parameters say about an object. */
static uint32_t read_params(const struct call *call, struct shared_object *object, uint64_t at)
{
	struct rm_channel_group_params group = {0};

	if (object->class == RM_CLASS_CHANNEL_GROUP) {
		if (!at || !copy_in(&group, at, sizeof(group)))
			return at ? RM_BAD_ADDRESS : RM_BAD_ARGUMENT;
		object->engine = group.engine;
	}
	if (object->class == CLASS_DEVICE) {
		if (at && !copy_in(&object->gpu, at, sizeof(object->gpu)))
			return RM_BAD_ADDRESS;
		if (object->gpu >= call->m->config.gpus)
			return RM_BAD_DEVICE;
	}
	return RM_OK;
}

static uint32_t name_group(struct call *call, struct shared_object *object)
{
	uint32_t i = shared_group_new(call->m->shared, call->process, object->gpu);

	if (i == MACHINE_GROUPS)
		return RM_NO_RESOURCES;
	call->m->shared->processes[call->process].groups[i].named = 1;
	object->group = i + 1;
	return RM_OK;
}

static uint32_t new_child(struct call *call, struct rm_alloc *p)
{
	const struct shared_object *parent = find(call, p->parent);
	struct shared_object object = {
		.client = p->client, .handle = p->object, .parent = p->parent, .class = p->class};
	uint32_t status;

	if (!parent)
		return RM_NOT_FOUND;
	if (p->object && find(call, p->object))
		return RM_DUPLICATE;
	if (!fits(parent->class, p->class))
		return RM_BAD_PARENT;
	object.gpu = parent->gpu;
	status = read_params(call, &object, p->params);
	if (status)
		return status;
	for (uint32_t h = OBJECT_FIRST; !object.handle; h++)
		object.handle = find(call, h) ? 0 : h;
	struct shared_object *at = new_object(call);
	if (!at)
		return RM_NO_RESOURCES;
	if (object.class == RM_CLASS_CHANNEL_GROUP && object.engine == RM_ENGINE_COMPUTE)
		status = name_group(call, &object);
	if (status)
		return status;
	*at = object;
	p->object = object.handle;
	if (RM_CLASS_IS_CHANNEL(object.class))
		update(call, object.parent);
	return RM_OK;
}

static uint32_t do_alloc(struct call *call, struct rm_alloc *p)
{
	uint32_t status;

	if (p->class <= 1 || p->class == CLASS_CLIENT)
		return new_client(call, p);
	status = enter(call, p->client);
	if (status)
		return status;
	if (p->class != CLASS_DEVICE && p->class != RM_CLASS_SUBDEVICE &&
	    p->class != RM_CLASS_CHANNEL_GROUP && !RM_CLASS_IS_CHANNEL(p->class))
		return RM_BAD_CLASS;
	return new_child(call, p);
}

static uint32_t slice(struct call *call, const struct shared_object *object, uint32_t command,
		      void *params)
{
	struct rm_slice *p = params;
	/* A copy engine's has none here. */
	uint64_t ignored = 0, *at = &ignored;

	if (object->group)
		at = &call->m->shared->processes[call->process].groups[object->group - 1].slice;
	if (command == RM_GET_SLICE)
		p->us = *at / 1000;
	else if (!p->us || p->us > UINT32_MAX)
		return RM_NOT_SUPPORTED;
	else
		*at = p->us * 1000;
	return RM_OK;
}

static uint32_t gpu_id(struct call *call, const struct shared_object *object, uint32_t command,
		       void *params)
{
	struct rm_gpu_id *p = params;

	(void)call;
	(void)command;
	if (p->flags & RM_GPU_ID_BINARY) {
		machine_uuid(object->gpu, p->data);
		p->length = 16;
	} else {
		machine_uuid_text(object->gpu, (char *)p->data);
		p->length = (uint32_t)strlen((char *)p->data) + 1;
	}
	return RM_OK;
}

/* With @only_scheduling what runs goes on, and so everything does here. */
static uint32_t disable(struct call *call, const struct shared_object *object, uint32_t command,
			void *params)
{
	const struct rm_disable_channels *p = params;
	struct shared_object *channels[RM_DISABLE_MAX];

	(void)object;
	(void)command;
	if (p->n > RM_DISABLE_MAX)
		return RM_BAD_ARGUMENT;
	if (p->event)
		return RM_NO_PERMISSION;
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->clients[i] != call->client)
			return RM_BAD_CLIENT;
		channels[i] = find(call, p->channels[i]);
		if (!channels[i] || !RM_CLASS_IS_CHANNEL(channels[i]->class))
			return RM_NOT_FOUND;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		channels[i]->disabled = p->disable && !p->only_scheduling;
		update(call, channels[i]->parent);
	}
	return RM_OK;
}

static const struct command {
	uint32_t number, class, size;
	uint32_t (*run)(struct call *call, const struct shared_object *object, uint32_t command,
			void *params);
} commands[] = {
	{RM_SET_SLICE, RM_CLASS_CHANNEL_GROUP, sizeof(struct rm_slice), slice},
	{RM_GET_SLICE, RM_CLASS_CHANNEL_GROUP, sizeof(struct rm_slice), slice},
	{RM_GPU_ID, RM_CLASS_SUBDEVICE, sizeof(struct rm_gpu_id), gpu_id},
	{RM_DISABLE_CHANNELS, RM_CLASS_SUBDEVICE, sizeof(struct rm_disable_channels), disable},
};

static uint32_t do_command(struct call *call, const struct rm_control *p)
{
	const struct shared_object *object = find(call, p->object);
	const struct command *command = NULL;
	uint64_t params[(sizeof(struct rm_disable_channels) + 7) / 8];
	uint32_t status;

	if (!object)
		return RM_NOT_FOUND;
	for (size_t i = 0; i < countof(commands); i++)
		if (commands[i].number == p->command && commands[i].class == object->class)
			command = &commands[i];
	if (!command)
		return RM_NOT_SUPPORTED;
	if (p->params_size != command->size)
		return RM_BAD_SIZE;
	if (!copy_in(params, p->params, command->size))
		return RM_BAD_ADDRESS;
	status = command->run(call, object, p->command, params);
	if (!status && !copy_out(p->params, params, command->size))
		return RM_BAD_ADDRESS;
	return status;
}

static uint32_t do_control(struct call *call, const struct rm_control *p)
{
	uint32_t status = enter(call, p->client);

	return status ? status : do_command(call, p);
}

union request {
	struct rm_alloc alloc;
	struct rm_alloc_short alloc_short;
	struct rm_free free;
	struct rm_control control;
};

static void do_alloc_short(struct call *call, struct rm_alloc_short *p)
{
	struct rm_alloc alloc = {.client = p->client,
				 .parent = p->parent,
				 .object = p->object,
				 .class = p->class,
				 .params = p->params};

	p->status = do_alloc(call, &alloc);
	p->object = alloc.object;
}

/* False: there is no such request. */
static bool answer(struct call *call, unsigned long number, union request *p)
{
	switch (number) {
	case RM_REQUEST(RM_IOCTL_FREE, struct rm_free):
		p->free.status = do_free(call, &p->free);
		return true;
	case RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control):
		p->control.status = do_control(call, &p->control);
		return true;
	case RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc):
		p->alloc.status = do_alloc(call, &p->alloc);
		return true;
	case RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc_short):
		do_alloc_short(call, &p->alloc_short);
		return true;
	default:
		return false;
	}
}

/* The call that disables a group returns when it has stopped. Not for ever: what stops it may wait
 * for this thread. Nor for a process that was stopped by a signal: its blocks do not run. */
static void await_stop(const struct call *call)
{
	struct machine *m = call->m;
	struct shared_group *group;
	uint64_t end = shared_now() + LEAVE_NS;
	uint32_t gpu, sequence;

	if (!call->stopped)
		return;
	gpu = call->stopped->gpu;
	group = &m->shared->processes[call->process].groups[call->stopped->group - 1];
	while (atomic_load(&group->stopped) && shared_placed(m->shared, group->leader) &&
	       shared_now() < end && !shared_frozen(m, call->process)) {
		sequence = atomic_load(&m->shared->gpus[gpu].sequence);
		shared_unlock(m);
		machine_wait(m, gpu, sequence);
		shared_lock(m);
	}
}

long machine_rm_ioctl(struct machine *m, int fd, unsigned long request, void *argument)
{
	size_t size = _IOC_SIZE(request);
	union request p = {0};
	struct stat st;

	if (m->lock_fd < 0) /* a child of fork() */
		return -ENODEV;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(RM_DEVICE_MAJOR, RM_DEVICE_MINOR))
		return -ENOTTY;
	if (size > sizeof(p))
		return -EINVAL;
	if (!copy_in(&p, (uintptr_t)argument, size))
		return -EFAULT;

	struct call call = {.m = m, .device = st.st_dev, .inode = st.st_ino};
	shared_lock(m);
	bool known = answer(&call, request, &p);
	await_stop(&call);
	shared_unlock(m);
	if (!known)
		return -EINVAL;
	return copy_out((uintptr_t)argument, &p, size) ? 0 : -EFAULT;
}

uint32_t machine_rm_group(struct machine *m, uint32_t client, uint32_t object)
{
	struct call call = {.m = m, .process = m->self, .client = client};
	const struct shared_object *group;
	uint32_t i = MACHINE_GROUPS;

	shared_lock(m);
	group = find_class(&call, object, RM_CLASS_CHANNEL_GROUP);
	if (group && group->group) {
		i = group->group - 1;
		m->shared->processes[m->self].groups[i].users++;
	}
	shared_unlock(m);
	return i;
}
