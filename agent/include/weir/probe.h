/* NVML's side of a GPU's health: errors that it tells, and questions to the GPU. What a driver does
 * not have is left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/health.h"
#include "weir/nvml.h"

/* A set of errors to listen to; NULL: this driver tells none. */
nvmlEventSet_t probe_events_new(const struct nvml *nvml);
/* NULL is fine. */
void probe_events_free(const struct nvml *nvml, nvmlEventSet_t events);
void probe_listen(const struct nvml *nvml, nvmlEventSet_t events, nvmlDevice_t device);
/* The next XID error that was told, without waiting for one; false: there is none. */
bool probe_next_error(const struct nvml *nvml, nvmlEventSet_t events, nvmlDevice_t *device,
		      uint64_t *xid);
/* Asks the GPU all that its health depends on; NULL: NVML does not list it. */
void probe_gpu(const struct nvml *nvml, nvmlDevice_t device, struct health *health,
	       const struct health_settings *settings, uint64_t now);
