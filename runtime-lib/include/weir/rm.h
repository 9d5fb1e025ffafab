/* The part of NVIDIA's resource manager (RM) that Weir knows: how libcuda makes a context's channel
 * group, and what may be done to one. libcuda talks to the kernel driver by ioctls of type 'F' on
 * the control device. The numbers and layouts are those of NVIDIA's open kernel modules (nvos.h,
 * nv-ioctl-numbers.h, ctrl2080fifo.h, ctrl2080gpu.h, ctrla06c.h); all that Weir uses stands here.
 *
 * RM names objects by a client (a number that belongs to one open descriptor of the control device)
 * and an object (a number that the client chose). A call succeeds only through the descriptor that
 * the client was made with, whichever process calls.
 *
 * A channel group is the hardware's unit of scheduling. A context has one for compute, with some
 * channels, and others for its copy engines. Under MPS the server has the one for compute. */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define RM_DEVICE_MAJOR 195u
#define RM_DEVICE_MINOR 255u /* /dev/nvidiactl */

#define RM_IOCTL_TYPE    'F'
#define RM_IOCTL_FREE    0x29u
#define RM_IOCTL_CONTROL 0x2au
#define RM_IOCTL_ALLOC   0x2bu

#define RM_CLASS_SUBDEVICE     0x2080u
#define RM_CLASS_CHANNEL_GROUP 0xa06cu
/* Every generation has a class of channels of its own: 0xc36f, 0xc46f, 0xc56f, 0xc86f, 0xc96f. */
#define RM_CLASS_IS_CHANNEL(class) (((class) & 0xffu) == 0x6fu)

#define RM_ENGINE_COMPUTE 1u

struct rm_alloc {
	uint32_t client, parent, object, class;
	uint64_t params, rights;
	uint32_t params_size, flags, status, reserved;
};
static_assert(sizeof(struct rm_alloc) == 48, "NVOS64_PARAMETERS");

/* What older drivers take; the size of the ioctl tells which it is. */
struct rm_alloc_short {
	uint32_t client, parent, object, class;
	uint64_t params;
	uint32_t params_size, status;
};
static_assert(sizeof(struct rm_alloc_short) == 32, "NVOS21_PARAMETERS");

struct rm_free {
	uint32_t client, parent, object, status;
};
static_assert(sizeof(struct rm_free) == 16, "NVOS00_PARAMETERS");

struct rm_control {
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t params_size, status;
};
static_assert(sizeof(struct rm_control) == 32, "NVOS54_PARAMETERS");

/* The first words of the parameters of a new channel group. */
struct rm_channel_group_params {
	uint32_t error, ecc_error, address_space, engine;
};
static_assert(sizeof(struct rm_channel_group_params) == 16,
	      "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS");

/* Commands of a channel group: struct rm_slice. */
#define RM_SET_SLICE 0xa06c0103u
#define RM_GET_SLICE 0xa06c0104u
/* Commands of a subdevice. */
#define RM_GPU_ID           0x2080014au /* struct rm_gpu_id */
#define RM_DISABLE_CHANNELS 0x2080110bu /* struct rm_disable_channels */

struct rm_slice {
	uint64_t us;
};
static_assert(sizeof(struct rm_slice) == 8, "NVA06C_CTRL_TIMESLICE_PARAMS");

#define RM_GPU_ID_BINARY 2u

struct rm_gpu_id {
	uint32_t index, flags, length;
	uint8_t data[256]; /* of a GPU, not of a MIG instance: CUuuid */
};
static_assert(sizeof(struct rm_gpu_id) == 268, "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS");

#define RM_DISABLE_MAX 64u

/* Channels that are disabled stop in the middle of a kernel, and stay so until they are enabled. */
struct rm_disable_channels {
	uint8_t disable, reserved0[3];
	uint32_t n;
	uint8_t only_scheduling, rewind, reserved1[6];
	uint64_t event;
	uint32_t clients[RM_DISABLE_MAX];
	uint32_t channels[RM_DISABLE_MAX];
};
static_assert(sizeof(struct rm_disable_channels) == 536,
	      "NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS");

#define RM_OK 0u

#define RM_REQUEST(number, type) _IOWR(RM_IOCTL_TYPE, number, type)
