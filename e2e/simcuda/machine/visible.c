/* CUDA_VISIBLE_DEVICES. */
#include "simcuda/machine/machine.h"

#include <stdlib.h>
#include <string.h>

/* The GPU that a word of @length bytes names, by number or by a UUID's beginning; -1: none. */
static int named_gpu(const struct machine *m, const char *word, size_t length)
{
	char uuid[MACHINE_UUID_TEXT], *end;
	unsigned long number = strtoul(word, &end, 10);

	if (length && end == word + length)
		return number < m->config.gpus ? (int)number : -1;
	for (uint32_t gpu = 0; gpu < m->config.gpus && length > 4; gpu++) {
		machine_uuid_text(gpu, uuid);
		if (strncmp(uuid, word, length) == 0)
			return (int)gpu;
	}
	return -1;
}

size_t machine_visible(const struct machine *m, uint32_t gpus[MACHINE_GPUS])
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	uint32_t n = 0;

	for (; list && n < MACHINE_GPUS; n++) {
		size_t length = strcspn(list, ",");
		int gpu = named_gpu(m, list, length);
		if (gpu < 0)
			break;
		gpus[n] = (uint32_t)gpu;
		list = list[length] ? list + length + 1 : "";
	}
	for (; !list && n < m->config.gpus; n++)
		gpus[n] = n;
	return n;
}
