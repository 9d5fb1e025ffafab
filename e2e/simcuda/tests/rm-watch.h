/* A definition of ioctl() that watches the resource manager's calls, as a library in a process may.
 * The includer defines see_slice(). */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weir/rm.h"

/* What a process knows of its newest objects. */
struct seen {
	uint32_t client, device, subdevice, compute, copy;
	uint32_t n_channels, n_copy_channels;
	uint32_t channels[16];
	uint64_t slice;
	int fd;
};
static struct seen seen;

/* A channel group got a time slice: the end of what makes a context. */
static void see_slice(uint64_t us);

static void see_object(int fd, const struct rm_alloc *p)
{
	const struct rm_channel_group_params *group =
		(const struct rm_channel_group_params *)(uintptr_t)p->params;

	if (p->class == 0x41)
		seen = (struct seen){.client = p->object, .fd = fd};
	else if (p->class == 0x80 && p->parent == seen.client)
		seen.device = p->object;
	else if (p->class == RM_CLASS_SUBDEVICE && p->parent == seen.device)
		seen.subdevice = p->object;
	else if (p->class == RM_CLASS_CHANNEL_GROUP && group->engine == RM_ENGINE_COMPUTE)
		seen.compute = p->object, seen.n_channels = 0;
	else if (p->class == RM_CLASS_CHANNEL_GROUP)
		seen.copy = p->object, seen.n_copy_channels = 0;
	else if (RM_CLASS_IS_CHANNEL(p->class) && p->parent == seen.copy)
		seen.n_copy_channels++;
	else if (RM_CLASS_IS_CHANNEL(p->class) && p->parent == seen.compute)
		seen.channels[seen.n_channels++ % 16] = p->object;
}

/* The driver's calls come here: this program defines it before libc. */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	int r = (int)syscall(SYS_ioctl, fd, request, argument);
	const struct rm_alloc *alloc = argument;
	const struct rm_control *control = argument;
	if (request == RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc) && !r && !alloc->status)
		see_object(fd, alloc);
	if (request == RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control) && !r && !control->status)
		see_slice(((const struct rm_slice *)(uintptr_t)control->params)->us);
	return r;
}
