/* Reads from NVML what health.h needs. Functions that a driver does not have are skipped. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/health.h"
#include "weir/nvml.h"

/* A set of XID errors to listen to; NULL: the driver reports none. */
nvmlEventSet_t probe_events_new(const struct nvml *nvml);
/* Accepts NULL. */
void probe_events_free(const struct nvml *nvml, nvmlEventSet_t events);
void probe_listen(const struct nvml *nvml, nvmlEventSet_t events, nvmlDevice_t device);
/* Takes the next XID error; does not wait. False: there is none. */
bool probe_next_error(const struct nvml *nvml, nvmlEventSet_t events, nvmlDevice_t *device,
		      uint64_t *xid);
/* Asks the GPU everything that its health depends on. @device: NULL if NVML does not list the GPU.
 */
void probe_gpu(const struct nvml *nvml, nvmlDevice_t device, struct health *health,
	       const struct health_settings *settings, uint64_t now);
