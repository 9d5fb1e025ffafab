#include "scheduler/gpu/gpu-id.h"

#include <stdio.h>
#include <string.h>

void gpu_id_format(const uint8_t uuid[16], char out[GPU_ID_SIZE])
{
	size_t n = (size_t)snprintf(out, GPU_ID_SIZE, "GPU");

	for (int i = 0; i < 16; i++) {
		bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
		n += (size_t)snprintf(out + n, GPU_ID_SIZE - n, "%s%02x", dash ? "-" : "", uuid[i]);
	}
}

bool gpu_id_parse(const char *id, uint8_t out[16])
{
	char again[GPU_ID_SIZE];
	uint8_t uuid[16];
	const char *at = id + 4;

	if (strlen(id) != GPU_ID_SIZE - 1)
		return false;
	for (int i = 0; i < 16; i++) {
		at += *at == '-';
		if (sscanf(at, "%2hhx", &uuid[i]) != 1)
			return false;
		at += 2;
	}
	gpu_id_format(uuid, again);
	if (strcmp(again, id) != 0)
		return false;
	memcpy(out, uuid, sizeof(uuid));
	return true;
}
