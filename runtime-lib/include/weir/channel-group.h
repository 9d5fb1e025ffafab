/* What may be done to a context's compute channel group, through the descriptor of the control
 * device that it was made with (rm.h). The calls take 0.3 to 0.8 ms, and may wait for the driver's
 * lock. Handles may be wrong: the driver then refuses, and harms nobody.
 *
 * Each returns 0; a positive status of RM, which refuses; or a negative errno. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_GROUP_CHANNELS 64u /* at most */

struct channel_group {
	uint32_t client;    /* owns all that follows */
	uint32_t subdevice; /* the GPU */
	uint32_t group;
	uint32_t n_channels;
	uint32_t channels[CHANNEL_GROUP_CHANNELS];
};

/* Whether @fd is the driver's control device. No other descriptor may be used below. */
bool channel_group_is_device(int fd);

#define CHANNEL_GROUP_SLICE 2048u /* us: what libcuda sets when it makes a context */

/* How long the group may run before the hardware switches to another one that has work. */
int channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us);
int channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us);

/* Stops the group in the middle of a kernel; or lets it go on. */
int channel_group_stop(int fd, const struct channel_group *group, bool stopped);

/* The CUuuid of the group's GPU. */
int channel_group_gpu(int fd, const struct channel_group *group, uint8_t uuid[16]);
