/* What an XID error, the NVIDIA driver's number for something that went wrong on a GPU, says about
 * the GPU's health. The table is xids.def, by NVIDIA's catalogue. */
#pragma once

#include <stdint.h>

enum xid_meaning {
	XID_HARMLESS, /* a program's own, or nothing at all: the GPU is as good as before */
	XID_REST,     /* not clear, or in no table: something is wrong, for a while at least */
	XID_RESET,    /* the GPU has to be reset, or the node booted, before it is good again */
};

enum xid_meaning xid_meaning(uint64_t xid);
/* A few words; of an XID that the table does not have, "not in the table". */
const char *xid_name(uint64_t xid);
