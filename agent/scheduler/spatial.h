/* Spatial yield: a higher-level client with few blocks leaves most of the SMs to lower-level ones,
 * where kernels of several clients run at the same time (MPS). Clients do it among themselves, in
 * the demand pages (weir/protocol.h). The agent
 *
 * - tells those below when they may rely on `whole` (WEIR_CONTROL_SPATIAL): every client above them
 *   sets it, some client above yields less than the whole GPU (weir.dev/yield), and no client may
 *   come back after the agent's restart. It takes the flag away before a client that does not set
 *   `whole` has its WELCOME;
 * - sets `whole` for clients of an older libweir, for kernels that were launched before that;
 * - corrects `sms` where clients have died (gpu_sweep()). */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu.h"

#define SPATIAL_UNKNOWN UINT64_MAX

/* Call whenever clients, levels or yields have changed. */
void spatial_tell(struct gpu *gpu);
/* Call regularly while clients of several levels are there. */
void spatial_look(struct gpu *gpu);
/* For people. SMs that the client's work needs from lower-level clients now, and that higher-level
 * ones leave to it. SPATIAL_UNKNOWN: it is time-sliced, or its libweir does not tell. */
uint64_t spatial_needed(const struct client *client);
uint64_t spatial_left(const struct client *client);
