/* What NVIDIA calls a GPU: its UUID as text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPU_ID_SIZE 41 /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */

void gpu_id_format(const uint8_t uuid[16], char out[GPU_ID_SIZE]);
/* False: not an id of the form above. */
bool gpu_id_parse(const char *id, uint8_t out[16]);
