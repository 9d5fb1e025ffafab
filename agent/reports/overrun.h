/* Overruns: a kernel stays on the GPU although its client is held, or higher levels have work. The
 * agent holds the client, but a kernel that never comes to an end, or to a point where it could
 * leave, ends no hold. Where the hardware can stop it, the others run all the same. Where it
 * cannot (mode mps, or without hardware preemption), they share the GPU with it for as long as it
 * likes. So it is reported, and by the configuration its process ended.
 *
 * libweir says how long it has been (weir_status_page.overrun). Time in which the hardware keeps it
 * out of the others' way does not count. Where kernels run one after the other, the driver's count
 * must show that the process runs (hardware/process-use.h). A process that writes a wrong time
 * hides its overruns; what it cannot hide from is the hardware (scheduler/preemption.h).
 * */
#pragma once

#include "config/config.h"
#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

struct events;
struct pods;

/* Looks at all clients of @gpu. Call about once in a second. */
void overrun_look(struct gpu *gpu, const struct config_overruns *config, uint64_t now);

/* An event for each pod with new cases on @gpu. */
void overrun_tell(struct events *events, struct pods *pods, const struct gpu *gpu);

/* ns that a native kernel of the client has stayed on the GPU since gates closed behind it, by the
 * client's word; 0: there is none, it has only begun to stay, or the hardware stops it. Nothing but
 * its own end frees the GPU. So it is with a kernel that began before the first higher-level client
 * came. */
uint64_t overrun_staying(const struct client *client);

/* Its kernel has been reported, and is still there. */
static inline bool overrun_is_told(const struct client *client)
{
	return client->overrun.told;
}
