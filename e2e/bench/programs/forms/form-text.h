/* The text of a benchmark with rewritten kernels beside the others. */
#pragma once

#include <stdint.h>

#include "plan.h"

/* The state that the workers of a module's kernels save, in bytes. */
struct form_saves {
	struct form_save {
		char name[128];
		uint32_t fixed, per_thread;
	} of[PLAN_KERNELS_MAX];
	unsigned count;
};

/* As in the compile service: persistent kernels have as many registers as natively, or @more of
 * them; resumable ones have no limit. @saves: zeroed before. The caller frees the text. */
char *form_text(const struct benchmark *benchmark, unsigned more, struct form_saves *saves);
