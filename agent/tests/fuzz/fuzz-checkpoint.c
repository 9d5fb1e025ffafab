/* Any bytes as the kubelet's checkpoint: no GPU has more free shares than there are. */
#include "kubernetes/checkpoint.h"

#include <stdlib.h>

static bool is_alive(void *userdata, const char *uid)
{
	(void)userdata;
	return *uid != 'd';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checkpoint checkpoint;

	if (checkpoint_parse(&checkpoint, (const char *)data, size, "weir.dev/gpu-share", is_alive,
			     NULL) < 0)
		return 0;
	if (checkpoint.n > CHECKPOINT_GPUS_MAX || checkpoint_largest_free(&checkpoint) > 100 ||
	    checkpoint_free_gpus(&checkpoint) > checkpoint.n)
		abort();
	return 0;
}
