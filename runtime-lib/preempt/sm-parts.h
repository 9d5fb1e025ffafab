/* Which part of an SM one block of a kernel takes. From that the agent computes how many blocks of
 * several clients fit beside each other (weir/protocol.h: worker_parts). */
#pragma once

#include "measure/kernel.h"
#include "shim/driver.h"

#include "weir/protocol.h"

/* @out: in 1/WEIR_SM_PARTS, at least 1 each. @fit: blocks of the kernel that an SM holds, as the
 * driver says, not 0: the parts of so many blocks fit, and no more. With the client's context
 * current. */
void sm_parts(CUdevice device, CUfunction function, const struct geometry *geometry, uint32_t fit,
	      uint32_t out[WEIR_SM_RESOURCES]);
