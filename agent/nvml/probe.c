#include "weir/probe.h"

nvmlEventSet_t probe_events_new(const struct nvml *nvml)
{
	nvmlEventSet_t events = NULL;

	if (!nvml->nvmlEventSetCreate || !nvml->nvmlEventSetWait_v2 ||
	    !nvml->nvmlDeviceRegisterEvents || nvml->nvmlEventSetCreate(&events) != NVML_SUCCESS)
		return NULL;
	return events;
}

void probe_events_free(const struct nvml *nvml, nvmlEventSet_t events)
{
	if (events && nvml->nvmlEventSetFree)
		nvml->nvmlEventSetFree(events);
}

void probe_listen(const struct nvml *nvml, nvmlEventSet_t events, nvmlDevice_t device)
{
	if (events)
		nvml->nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError, events);
}

bool probe_next_error(const struct nvml *nvml, nvmlEventSet_t events, nvmlDevice_t *device,
		      uint64_t *xid)
{
	nvmlEventData_t event;

	while (events && nvml->nvmlEventSetWait_v2(events, &event, 0) == NVML_SUCCESS) {
		if (event.eventType != nvmlEventTypeXidCriticalError)
			continue;
		*device = event.device;
		*xid = event.eventData;
		return true;
	}
	return false;
}

static enum health_answer ask(const struct nvml *nvml, nvmlDevice_t device)
{
	nvmlMemory_t memory;

	if (!device)
		return HEALTH_LOST;
	switch (nvml->nvmlDeviceGetMemoryInfo(device, &memory)) {
	case NVML_SUCCESS:
		return HEALTH_ANSWERS;
	case NVML_ERROR_GPU_IS_LOST:
	case NVML_ERROR_RESET_REQUIRED:
		return HEALTH_LOST;
	default:
		return HEALTH_SILENT;
	}
}

static void ask_for_memory(const struct nvml *nvml, nvmlDevice_t device, struct health *health,
			   const struct health_settings *settings, uint64_t now)
{
	unsigned corrected, uncorrected, pending, failed;
	unsigned long long errors;

	if (nvml->nvmlDeviceGetTotalEccErrors &&
	    nvml->nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
					      NVML_VOLATILE_ECC, &errors) == NVML_SUCCESS)
		health_errors(health, settings, errors, now);
	if (nvml->nvmlDeviceGetRemappedRows &&
	    nvml->nvmlDeviceGetRemappedRows(device, &corrected, &uncorrected, &pending, &failed) ==
		    NVML_SUCCESS)
		health_remap(health, settings, failed);
}

static void ask_for_action(const struct nvml *nvml, nvmlDevice_t device, struct health *health)
{
	nvmlFieldValue_t field = {.fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION};

	if (nvml->nvmlDeviceGetFieldValues &&
	    nvml->nvmlDeviceGetFieldValues(device, 1, &field) == NVML_SUCCESS &&
	    field.nvmlReturn == NVML_SUCCESS)
		health_action(health, field.value.uiVal);
}

void probe_gpu(const struct nvml *nvml, nvmlDevice_t device, struct health *health,
	       const struct health_settings *settings, uint64_t now)
{
	enum health_answer answer = ask(nvml, device);

	health_asked(health, answer);
	if (answer != HEALTH_ANSWERS)
		return;
	ask_for_memory(nvml, device, health, settings, now);
	ask_for_action(nvml, device, health);
}
