/* What a context asks the kernel driver for: a channel group for compute, and one for a copy
 * engine, by the same calls as the real libcuda. They go to whoever defines ioctl() first in the
 * process. If the resource manager cannot be had here, the context has a group without a name. */
#include "simcuda/driver/exec.h"

#include <signal.h>
#include <sys/ioctl.h>

#include "weir/rm.h"

#define CLASS_CLIENT  0x41u
#define CLASS_DEVICE  0x80u
#define CLASS_CHANNEL 0xc86fu /* as a Hopper's */
#define ENGINE_COPY   11u
#define CHANNELS      8
#define SLICE_US      2048u

static struct {
	int fd;
	bool opened;
	uint32_t client, last;
	uint32_t devices[MACHINE_GPUS], subdevices[MACHINE_GPUS];
} rm = {.fd = -1, .last = 0x5c000000};

/* Also on threads that block every signal. */
static bool call(unsigned long request, void *p)
{
	sigset_t traps, before;
	bool done;

	if (!machine_rm_trap(&sim.machine, false))
		return false;
	sigemptyset(&traps);
	sigaddset(&traps, SIGSYS);
	pthread_sigmask(SIG_UNBLOCK, &traps, &before);
	done = ioctl(rm.fd, request, p) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return done;
}

/* A handle; 0: it failed. */
static uint32_t make(uint32_t parent, uint32_t class, void *params, uint32_t size)
{
	struct rm_alloc p = {.client = rm.client,
			     .parent = parent,
			     .object = rm.client ? ++rm.last : 0,
			     .class = class,
			     .params = (uintptr_t)params,
			     .params_size = size};

	bool done = call(RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc), &p);
	return done && !p.status ? p.object : 0;
}

static void end(uint32_t parent, uint32_t object)
{
	struct rm_free p = {.client = rm.client, .parent = parent, .object = object};

	if (object)
		call(RM_REQUEST(RM_IOCTL_FREE, struct rm_free), &p);
}

static bool open_client(void)
{
	if (rm.opened)
		return rm.client != 0;
	rm.opened = true;
	rm.fd = machine_rm_open(&sim.machine);
	if (rm.fd >= 0)
		rm.client = make(0, CLASS_CLIENT, NULL, 0);
	return rm.client != 0;
}

static bool open_device(uint32_t gpu)
{
	uint32_t device_params[14] = {gpu}, subdevice_params = 0;

	if (!rm.devices[gpu])
		rm.devices[gpu] =
			make(rm.client, CLASS_DEVICE, device_params, sizeof(device_params));
	if (rm.devices[gpu] && !rm.subdevices[gpu])
		rm.subdevices[gpu] = make(rm.devices[gpu], RM_CLASS_SUBDEVICE, &subdevice_params,
					  sizeof(subdevice_params));
	return rm.subdevices[gpu] != 0;
}

static uint32_t make_group(uint32_t gpu, uint32_t engine, int channels)
{
	struct rm_channel_group_params params = {.engine = engine};
	uint32_t group = make(rm.devices[gpu], RM_CLASS_CHANNEL_GROUP, &params, sizeof(params));

	for (int i = 0; group && i < channels; i++)
		make(group, CLASS_CHANNEL, NULL, 0);
	return group;
}

static void set_slice(uint32_t group)
{
	struct rm_slice slice = {.us = SLICE_US};
	struct rm_control p = {.client = rm.client,
			       .object = group,
			       .command = RM_SET_SLICE,
			       .params = (uintptr_t)&slice,
			       .params_size = sizeof(slice)};

	call(RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control), &p);
}

void channels_trap(void)
{
	if (rm.client)
		machine_rm_trap(&sim.machine, false);
}

void channels_new(struct context *ctx)
{
	uint32_t gpu = ctx->device->gpu;

	ctx->group = MACHINE_GROUPS;
	if (open_client() && open_device(gpu)) {
		ctx->channels.compute = make_group(gpu, RM_ENGINE_COMPUTE, CHANNELS);
		ctx->channels.copy = make_group(gpu, ENGINE_COPY, 1);
		ctx->group = machine_rm_group(&sim.machine, rm.client, ctx->channels.compute);
	}
	if (ctx->group == MACHINE_GROUPS)
		ctx->group = machine_group_new(&sim.machine, gpu);
	else
		set_slice(ctx->channels.compute);
}

void channels_free(struct context *ctx)
{
	uint32_t device = rm.devices[ctx->device->gpu];

	end(device, ctx->channels.copy);
	end(device, ctx->channels.compute);
	machine_group_free(&sim.machine, ctx->group);
}
