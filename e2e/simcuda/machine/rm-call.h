/* A call of the resource manager. */
#pragma once

#include "simcuda/machine/file.h"

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

struct rm_call {
	struct machine *m;
	uint64_t device, inode;
	uint32_t process; /* whose row */
	uint32_t client;
	const struct shared_object *stopped; /* the compute group that the call has stopped */
};

/* Of the calling process's memory. False: there is none. */
bool rm_call_copy_in(void *local, uint64_t remote, size_t size);
bool rm_call_copy_out(uint64_t remote, void *local, size_t size);
