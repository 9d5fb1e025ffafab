/* The kernel driver's resource manager (weir/rm.h), as much of it as channel groups need.
 *
 * The real one knows a client by the open file that made it. Here that is the inode of the
 * process's device node (rm-node.c). This file has the calls and the commands, rm-objects.c the
 * objects. */
#include "simcuda/machine/rm-objects.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "weir/base.h"

#define LEAVE_NS UINT64_C(10000000000) /* blocks of a disabled group need a moment to stop */

static uint32_t slice(struct rm_call *call, const struct shared_object *object, uint32_t command,
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

static uint32_t gpu_id(struct rm_call *call, const struct shared_object *object, uint32_t command,
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
static uint32_t disable(struct rm_call *call, const struct shared_object *object, uint32_t command,
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
		channels[i] = rm_objects_find(call, p->channels[i]);
		if (!channels[i] || !RM_CLASS_IS_CHANNEL(channels[i]->class))
			return RM_NOT_FOUND;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		channels[i]->disabled = p->disable && !p->only_scheduling;
		rm_objects_update(call, channels[i]->parent);
	}
	return RM_OK;
}

static const struct command {
	uint32_t number, class, size;
	uint32_t (*run)(struct rm_call *call, const struct shared_object *object, uint32_t command,
			void *params);
} commands[] = {
	{RM_SET_SLICE, RM_CLASS_CHANNEL_GROUP, sizeof(struct rm_slice), slice},
	{RM_GET_SLICE, RM_CLASS_CHANNEL_GROUP, sizeof(struct rm_slice), slice},
	{RM_GPU_ID, RM_CLASS_SUBDEVICE, sizeof(struct rm_gpu_id), gpu_id},
	{RM_DISABLE_CHANNELS, RM_CLASS_SUBDEVICE, sizeof(struct rm_disable_channels), disable},
};

static uint32_t do_command(struct rm_call *call, const struct rm_control *p)
{
	const struct shared_object *object = rm_objects_find(call, p->object);
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
	if (!rm_call_copy_in(params, p->params, command->size))
		return RM_BAD_ADDRESS;
	status = command->run(call, object, p->command, params);
	if (!status && !rm_call_copy_out(p->params, params, command->size))
		return RM_BAD_ADDRESS;
	return status;
}

static uint32_t do_control(struct rm_call *call, const struct rm_control *p)
{
	uint32_t status = rm_objects_enter(call, p->client);

	return status ? status : do_command(call, p);
}

union request {
	struct rm_alloc alloc;
	struct rm_alloc_short alloc_short;
	struct rm_free free;
	struct rm_control control;
};

static void do_alloc_short(struct rm_call *call, struct rm_alloc_short *p)
{
	struct rm_alloc alloc = {.client = p->client,
				 .parent = p->parent,
				 .object = p->object,
				 .class = p->class,
				 .params = p->params};

	p->status = rm_objects_alloc(call, &alloc);
	p->object = alloc.object;
}

/* False: there is no such request. */
static bool answer(struct rm_call *call, unsigned long number, union request *p)
{
	switch (number) {
	case RM_REQUEST(RM_IOCTL_FREE, struct rm_free):
		p->free.status = rm_objects_free(call, &p->free);
		return true;
	case RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control):
		p->control.status = do_control(call, &p->control);
		return true;
	case RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc):
		p->alloc.status = rm_objects_alloc(call, &p->alloc);
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
static void await_stop(const struct rm_call *call)
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
	if (!rm_call_copy_in(&p, (uintptr_t)argument, size))
		return -EFAULT;

	struct rm_call call = {.m = m, .device = st.st_dev, .inode = st.st_ino};
	shared_lock(m);
	bool known = answer(&call, request, &p);
	await_stop(&call);
	shared_unlock(m);
	if (!known)
		return -EINVAL;
	return rm_call_copy_out((uintptr_t)argument, &p, size) ? 0 : -EFAULT;
}

uint32_t machine_rm_group(struct machine *m, uint32_t client, uint32_t object)
{
	struct rm_call call = {.m = m, .process = m->self, .client = client};
	const struct shared_object *group;
	uint32_t i = MACHINE_GROUPS;

	shared_lock(m);
	group = rm_objects_find_class(&call, object, RM_CLASS_CHANNEL_GROUP);
	if (group && group->group) {
		i = group->group - 1;
		m->shared->processes[m->self].groups[i].users++;
	}
	shared_unlock(m);
	return i;
}
