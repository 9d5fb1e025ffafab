#include "simcuda/machine/rm-objects.h"

#define CLASS_CLIENT 0x41u
#define CLASS_DEVICE 0x80u
/* The resource manager chooses the handles of clients. The lowest bits are the process. */
#define CLIENT_BASE  0xc1d00000u
#define CLIENT_MASK  0xfff00000u
#define OBJECT_FIRST 0x5c000001u /* where it chooses the handle of an object */

static struct shared_object *row(const struct rm_call *call)
{
	return call->m->shared->objects[call->process];
}

struct shared_object *rm_objects_find(const struct rm_call *call, uint32_t handle)
{
	struct shared_object *objects = row(call);

	for (uint32_t i = 0; i < call->m->shared->processes[call->process].objects; i++)
		if (objects[i].class && objects[i].client == call->client &&
		    objects[i].handle == handle)
			return &objects[i];
	return NULL;
}

struct shared_object *rm_objects_find_class(const struct rm_call *call, uint32_t handle,
					    uint32_t class)
{
	struct shared_object *object = rm_objects_find(call, handle);

	return object && object->class == class ? object : NULL;
}

uint32_t rm_objects_enter(struct rm_call *call, uint32_t client)
{
	const struct shared_object *object;

	call->client = client;
	call->process = client % MACHINE_PROCESSES;
	if ((client & CLIENT_MASK) != CLIENT_BASE)
		return RM_BAD_CLIENT;
	if (call->process != call->m->self && shared_dead(call->m, call->process))
		shared_forget(call->m->shared, call->process);
	object = rm_objects_find_class(call, client, CLASS_CLIENT);
	if (!object || object->device != call->device || object->inode != call->inode)
		return RM_BAD_CLIENT;
	return RM_OK;
}

static struct shared_object *new_object(struct rm_call *call)
{
	uint32_t *n = &call->m->shared->processes[call->process].objects;
	struct shared_object *objects = row(call);

	for (uint32_t i = 0; i < *n; i++)
		if (!objects[i].class)
			return &objects[i];
	return *n < MACHINE_OBJECTS ? &objects[(*n)++] : NULL;
}

void rm_objects_update(struct rm_call *call, uint32_t handle)
{
	struct shared_object *objects = row(call), *group = rm_objects_find(call, handle);
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

static void remove_object(struct rm_call *call, struct shared_object *object)
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
		rm_objects_update(call, gone.parent);
}

static void remove_orphans(struct rm_call *call)
{
	struct shared_object *objects = row(call);

	for (uint32_t i = 0; i < MACHINE_OBJECTS; i++) {
		if (!objects[i].class || objects[i].client != call->client ||
		    objects[i].class == CLASS_CLIENT || rm_objects_find(call, objects[i].parent))
			continue;
		remove_object(call, &objects[i]);
		i = UINT32_MAX; /* from the beginning: it may have had children */
	}
}

uint32_t rm_objects_free(struct rm_call *call, const struct rm_free *p)
{
	uint32_t status = rm_objects_enter(call, p->client);
	struct shared_object *object = status ? NULL : rm_objects_find(call, p->object);

	if (status)
		return status;
	if (!object)
		return RM_NOT_FOUND;
	remove_object(call, object);
	remove_orphans(call);
	return RM_OK;
}

static uint32_t new_client(struct rm_call *call, struct rm_alloc *p)
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
static uint32_t read_params(const struct rm_call *call, struct shared_object *object, uint64_t at)
{
	struct rm_channel_group_params group = {0};

	if (object->class == RM_CLASS_CHANNEL_GROUP) {
		if (!at || !rm_call_copy_in(&group, at, sizeof(group)))
			return at ? RM_BAD_ADDRESS : RM_BAD_ARGUMENT;
		object->engine = group.engine;
	}
	if (object->class == CLASS_DEVICE) {
		if (at && !rm_call_copy_in(&object->gpu, at, sizeof(object->gpu)))
			return RM_BAD_ADDRESS;
		if (object->gpu >= call->m->config.gpus)
			return RM_BAD_DEVICE;
	}
	return RM_OK;
}

static uint32_t name_group(struct rm_call *call, struct shared_object *object)
{
	uint32_t i = shared_group_new(call->m->shared, call->process, object->gpu);

	if (i == MACHINE_GROUPS)
		return RM_NO_RESOURCES;
	call->m->shared->processes[call->process].groups[i].named = 1;
	object->group = i + 1;
	return RM_OK;
}

static uint32_t new_child(struct rm_call *call, struct rm_alloc *p)
{
	const struct shared_object *parent = rm_objects_find(call, p->parent);
	struct shared_object object = {
		.client = p->client, .handle = p->object, .parent = p->parent, .class = p->class};
	uint32_t status;

	if (!parent)
		return RM_NOT_FOUND;
	if (p->object && rm_objects_find(call, p->object))
		return RM_DUPLICATE;
	if (!fits(parent->class, p->class))
		return RM_BAD_PARENT;
	object.gpu = parent->gpu;
	status = read_params(call, &object, p->params);
	if (status)
		return status;
	for (uint32_t h = OBJECT_FIRST; !object.handle; h++)
		object.handle = rm_objects_find(call, h) ? 0 : h;
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
		rm_objects_update(call, object.parent);
	return RM_OK;
}

uint32_t rm_objects_alloc(struct rm_call *call, struct rm_alloc *p)
{
	uint32_t status;

	if (p->class <= 1 || p->class == CLASS_CLIENT)
		return new_client(call, p);
	status = rm_objects_enter(call, p->client);
	if (status)
		return status;
	if (p->class != CLASS_DEVICE && p->class != RM_CLASS_SUBDEVICE &&
	    p->class != RM_CLASS_CHANNEL_GROUP && !RM_CLASS_IS_CHANNEL(p->class))
		return RM_BAD_CLASS;
	return new_child(call, p);
}
