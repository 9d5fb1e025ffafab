#include "simcuda/machine/rm-client.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "weir/rm.h"

#define CLASS_CLIENT  0x41u
#define CLASS_DEVICE  0x80u
#define CLASS_CHANNEL 0xc86fu /* as a Hopper's */
#define ENGINE_COPY   11u
#define CHANNELS      8
#define SLICE_US      2048u

/* Also on threads that block every signal. */
static bool call(const struct rm_client *c, unsigned long request, void *p)
{
	sigset_t traps, before;
	bool done;

	if (!machine_rm_trap(c->machine, false))
		return false;
	sigemptyset(&traps);
	sigaddset(&traps, SIGSYS);
	pthread_sigmask(SIG_UNBLOCK, &traps, &before);
	done = ioctl(c->fd, request, p) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return done;
}

/* A handle; 0: it failed. */
static uint32_t make(struct rm_client *c, uint32_t parent, uint32_t class, void *params,
		     uint32_t size)
{
	struct rm_alloc p = {.client = c->client,
			     .parent = parent,
			     .object = c->client ? ++c->last : 0,
			     .class = class,
			     .params = (uintptr_t)params,
			     .params_size = size};

	bool done = call(c, RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc), &p);
	return done && !p.status ? p.object : 0;
}

bool rm_client_open(struct rm_client *c, struct machine *m, uint32_t gpu)
{
	uint32_t device[14] = {gpu}, subdevice = 0;

	if (!c->opened) {
		c->opened = true;
		c->machine = m;
		c->fd = machine_rm_open(m);
		c->client = c->fd < 0 ? 0 : make(c, 0, CLASS_CLIENT, NULL, 0);
	}
	if (c->client && !c->devices[gpu])
		c->devices[gpu] = make(c, c->client, CLASS_DEVICE, device, sizeof(device));
	if (c->devices[gpu] && !c->subdevices[gpu])
		c->subdevices[gpu] =
			make(c, c->devices[gpu], RM_CLASS_SUBDEVICE, &subdevice, sizeof(subdevice));
	return c->subdevices[gpu] != 0;
}

static uint32_t make_group(struct rm_client *c, uint32_t gpu, uint32_t engine, int channels)
{
	struct rm_channel_group_params params = {.engine = engine};
	uint32_t group = make(c, c->devices[gpu], RM_CLASS_CHANNEL_GROUP, &params, sizeof(params));

	for (int i = 0; group && i < channels; i++)
		make(c, group, CLASS_CHANNEL, NULL, 0);
	return group;
}

uint32_t rm_client_compute(struct rm_client *c, uint32_t gpu)
{
	struct rm_slice slice = {.us = SLICE_US};
	struct rm_control p = {.client = c->client,
			       .object = make_group(c, gpu, RM_ENGINE_COMPUTE, CHANNELS),
			       .command = RM_SET_SLICE,
			       .params = (uintptr_t)&slice,
			       .params_size = sizeof(slice)};

	if (p.object)
		call(c, RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control), &p);
	return p.object;
}

uint32_t rm_client_copy(struct rm_client *c, uint32_t gpu)
{
	return make_group(c, gpu, ENGINE_COPY, 1);
}

void rm_client_free(struct rm_client *c, uint32_t gpu, uint32_t group)
{
	struct rm_free p = {.client = c->client, .parent = c->devices[gpu], .object = group};

	if (group)
		call(c, RM_REQUEST(RM_IOCTL_FREE, struct rm_free), &p);
}
