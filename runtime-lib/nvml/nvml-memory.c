/* The GPU's memory as the container may use it: the limit, and what its processes have reserved.
 * Without a limit, or before an agent tells it, the card's memory. */
#include "memory/memory-account.h"
#include "nvml/nvml.h"
#include "shim/thread.h"

#include <stdio.h>
#include <string.h>

#define GPUS_MAX 64u
#define ASK_NS   NS_PER_S /* a restarted agent may have another account */

static struct {
	pthread_mutex_t lock;
	struct {
		uint8_t gpu[16];
		uint64_t ask_at;
		struct memory_pages pages; /* of the last answer with an account */
	} views[GPUS_MAX];
	size_t n;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool read_uuid(uint8_t out[16], nvmlDevice_t device)
{
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	const char *at = text + strlen("GPU-");

	if (real(nvmlDeviceGetUUID)(device, text, sizeof(text)) != NVML_SUCCESS ||
	    strncmp(text, "GPU-", strlen("GPU-")) != 0)
		return false;
	for (size_t i = 0; i < 16; i++) {
		unsigned byte;
		at += *at == '-';
		if (sscanf(at, "%2x", &byte) != 1)
			return false;
		out[i] = (uint8_t)byte;
		at += 2;
	}
	return true;
}

/* With the lock held. NULL: no room. */
static const struct memory_pages *look(const uint8_t gpu[16])
{
	struct memory_pages heard;
	size_t i = 0;

	while (i < state.n && memcmp(state.views[i].gpu, gpu, 16) != 0)
		i++;
	if (i == GPUS_MAX)
		return NULL;
	if (i == state.n)
		memcpy(state.views[state.n++].gpu, gpu, 16);
	if (monotonic_now() < state.views[i].ask_at)
		return &state.views[i].pages;
	if (memory_ask(&heard, gpu, false) == MEMORY_ACCOUNT) {
		memory_unmap(&state.views[i].pages);
		state.views[i].pages = heard;
	}
	state.views[i].ask_at = monotonic_now() + ASK_NS;
	return &state.views[i].pages;
}

/* False: no limit. */
static bool view(nvmlDevice_t device, uint64_t *limit, uint64_t *reserved)
{
	uint8_t gpu[16];

	if (!read_uuid(gpu, device))
		return false;
	locked(&state.lock);
	const struct memory_pages *pages = look(gpu);
	return pages && memory_view(pages, limit, reserved);
}

void nvml_memory_forget(void)
{
	memset(&state, 0, sizeof(state));
	pthread_mutex_init(&state.lock, NULL);
}

#define INFO(function, type, more)                                                          \
	EXPORT nvmlReturn_t function(nvmlDevice_t device, type *memory)                     \
	{                                                                                   \
		uint64_t limit, reserved;                                                   \
                                                                                            \
		nvml_ready();                                                               \
		nvmlReturn_t result = real(function)(device, memory);                       \
		if (result == NVML_SUCCESS && view(device, &limit, &reserved)) {            \
			memory->total = smaller(memory->total, limit);                      \
			memory->used = smaller(reserved, memory->total);                    \
			memory->free = smaller(memory->free, memory->total - memory->used); \
			more;                                                               \
		}                                                                           \
		return result;                                                              \
	}
INFO(nvmlDeviceGetMemoryInfo, nvmlMemory_t, )
/* The driver's own memory is not the container's. */
INFO(nvmlDeviceGetMemoryInfo_v2, nvmlMemory_v2_t, memory->reserved = 0)
