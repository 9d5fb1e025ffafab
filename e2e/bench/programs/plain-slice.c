/* For LD_PRELOAD: the hardware gives a process slices of PLAIN_SLICE_US us, and Weir has no part in
 * it. libcuda asks for slices of its own at the end of making a context; here it asks for these.
 * Only compute channel groups have them, as with Weir. Says so on standard error.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/base.h>
#include <weir/rm.h>

#define GROUPS 64u

/* The newest compute groups. libcuda makes one context at a time. */
static struct {
	uint32_t client, group;
} groups[GROUPS];
static unsigned n_groups;

static void see_object(const struct rm_alloc *made)
{
	const struct rm_channel_group_params *params = (const void *)(uintptr_t)made->params;

	if (made->status != RM_OK || made->class != RM_CLASS_CHANNEL_GROUP || !params ||
	    params->engine != RM_ENGINE_COMPUTE)
		return;
	groups[n_groups % GROUPS].client = made->client;
	groups[n_groups++ % GROUPS].group = made->object;
}

static bool is_compute(const struct rm_control *call)
{
	for (unsigned i = 0; i < GROUPS; i++) {
		if (groups[i].group == call->object && groups[i].client == call->client)
			return true;
	}
	return false;
}

static bool sets_slice(uint32_t request, const struct rm_control *call)
{
	return request == RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control) &&
	       call->command == RM_SET_SLICE && call->params_size == sizeof(struct rm_slice) &&
	       is_compute(call);
}

/* Asks for another slice than libcuda does. */
static int set_slice(int fd, unsigned long request, struct rm_control *call, uint64_t us)
{
	struct rm_slice *slice = (void *)(uintptr_t)call->params;

	slice->us = us;
	int r = (int)syscall(SYS_ioctl, fd, request, call);
	fprintf(stderr, "plain-slice: %llu us: %s\n", (unsigned long long)us,
		r == 0 && call->status == RM_OK ? "taken" : "refused");
	return r;
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	const char *us = getenv("PLAIN_SLICE_US");
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	if (us && sets_slice((uint32_t)request, argument))
		return set_slice(fd, request, argument, strtoull(us, NULL, 10));
	int r = (int)syscall(SYS_ioctl, fd, request, argument);
	if (r == 0 && (uint32_t)request == RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc))
		see_object(argument);
	return r;
}
