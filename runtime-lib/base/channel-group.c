#include "weir/channel-group.h"

#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weir/rm.h"

bool channel_group_is_device(int fd)
{
	struct statx info;

	/* Without asking the file system, which may be somebody's FUSE and never answer. glibc has
	 * no statx() before 2.28. */
	return syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) ==
		       0 &&
	       S_ISCHR(info.stx_mode) && info.stx_rdev_major == RM_DEVICE_MAJOR &&
	       info.stx_rdev_minor == RM_DEVICE_MINOR;
}

static int control(int fd, uint32_t client, uint32_t object, uint32_t command, void *params,
		   uint32_t size)
{
	struct rm_control call = {
		.client = client,
		.object = object,
		.command = command,
		.params = (uintptr_t)params,
		.params_size = size,
	};

	if (ioctl(fd, RM_REQUEST(RM_IOCTL_CONTROL, struct rm_control), &call) < 0)
		return -errno;
	/* Statuses are small numbers; one that is not must not look like an errno. */
	return call.status > INT32_MAX ? INT32_MAX : (int)call.status;
}

int channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us)
{
	struct rm_slice slice = {.us = us};

	return control(fd, group->client, group->group, RM_SET_SLICE, &slice, sizeof(slice));
}

int channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us)
{
	struct rm_slice slice = {0};
	int r = control(fd, group->client, group->group, RM_GET_SLICE, &slice, sizeof(slice));

	*us = slice.us;
	return r;
}

int channel_group_stop(int fd, const struct channel_group *group, bool stopped)
{
	struct rm_disable_channels disable = {.disable = stopped, .n = group->n_channels};

	static_assert(RM_DISABLE_MAX == CHANNEL_GROUP_CHANNELS, "all in one call");
	if (group->n_channels > CHANNEL_GROUP_CHANNELS)
		return -EINVAL;
	for (uint32_t i = 0; i < group->n_channels; i++) {
		disable.clients[i] = group->client;
		disable.channels[i] = group->channels[i];
	}
	return control(fd, group->client, group->subdevice, RM_DISABLE_CHANNELS, &disable,
		       sizeof(disable));
}

int channel_group_gpu(int fd, const struct channel_group *group, uint8_t uuid[16])
{
	struct rm_gpu_id id = {.flags = RM_GPU_ID_BINARY};
	int r = control(fd, group->client, group->subdevice, RM_GPU_ID, &id, sizeof(id));

	if (r == 0 && id.length != 16)
		return -EPROTO;
	memcpy(uuid, id.data, 16);
	return r;
}
