/* What an XID error (the NVIDIA driver's number for an error on a GPU) means for the GPU's health.
 * The table xids.def follows NVIDIA's catalogue. */
#pragma once

#include <stdint.h>

enum xid_meaning {
	XID_HARMLESS, /* a program's own fault, or no fault: the GPU is fine */
	XID_REST,     /* unclear or not in the table: unhealthy for the recovery time */
	XID_RESET,    /* unhealthy until the GPU is reset or the node reboots */
};

enum xid_meaning xid_meaning(uint64_t xid);
/* A few words; "not in the table" if the table lacks it. */
const char *xid_name(uint64_t xid);
