/* Instructions of class OP_ASYNC, by what must happen before the block's shared memory is used for
 * another block. */
#pragma once

#include "analysis/cfg.h"

enum async_kind {
	ASYNC_COPY,     /* cp.async: cp.async.wait_all awaits it */
	ASYNC_MBARRIER, /* works on an mbarrier, which must be invalidated */
	ASYNC_LOAD,     /* writes to shared memory: the kernel awaits it at an mbarrier */
	ASYNC_STORE,    /* bulk copies out of shared memory, and their groups */
	ASYNC_MATRIX,   /* wgmma, and its groups */
	ASYNC_HINT,     /* a prefetch */
	ASYNC_OTHER,    /* cannot be awaited; see the reason */
};

struct async_use {
	enum async_kind kind;
	const char *reason; /* of ASYNC_OTHER */
};

struct async_use async_use_of(const struct mnemonic *mnemonic);

/* Whether @function has an instruction of this kind. */
bool async_has(const struct function *function, enum async_kind kind);

/* An exit where products of wgmma may still be computed, because some path to it has no
 * wgmma.wait_group 0 behind them. NULL: there is none. */
const struct instruction *async_unawaited_exit(const struct function *function,
					       const struct cfg *cfg);
