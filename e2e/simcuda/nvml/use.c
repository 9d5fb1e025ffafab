/* Which processes ran, in periods of 200 ms of the wall clock, as driver 580 tells it. */
#include "simcuda/nvml/state.h"

#include <stdlib.h>

#include "weir/base.h"

#define SAMPLES_MAX 4096u

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					     nvmlProcessUtilizationSample_t *out,
					     unsigned int *count, unsigned long long last_seen)
{
	cleanup(freep) struct machine_use *list = NULL;
	unsigned gpu, room;
	size_t n;

	RETURN_IF(nvml_device(device, &gpu));
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	list = calloc(SAMPLES_MAX, sizeof(*list));
	if (!list)
		return NVML_ERROR_MEMORY;
	n = machine_use(nvml_machine(), gpu, last_seen, list, SAMPLES_MAX);
	if (!n)
		return NVML_ERROR_NOT_FOUND;
	room = out ? *count : 0;
	*count = (unsigned)n;
	if (room < n)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (size_t i = 0; i < n; i++)
		out[i] = (nvmlProcessUtilizationSample_t){
			.pid = list[i].pid, .timeStamp = list[i].end_us, .smUtil = list[i].percent};
	return NVML_SUCCESS;
}
