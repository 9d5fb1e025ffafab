/* What a container gets for its GPUs: environment, mounts, device nodes.
 *
 *   shares of a GPU   libweir at its versioned path, /etc/ld.so.preload that names it, the agent's
 * folder, and the same as for a whole GPU whole GPUs        device nodes and driver, without Weir
 *
 * The kubelet keeps this answer for the life of the pod and uses it again when a container
 * restarts. So every path in it must stay valid: this is why the library's path has a version.
 */
#pragma once

#include <stdbool.h>

#include "deviceplugin-v1beta1.pb-c.h"

struct config;
struct driver;
struct gpu;
struct grant;

/* Free @out with codec_free(). 0 or -ENOMEM. */
int container_spec(V1beta1__ContainerAllocateResponse **out, const struct config *config,
		   const struct driver *driver, const struct gpu *gpus, const struct grant *grant);

/* For a container that no GPU has room for: a mount that no runtime can make. The pod is admitted
 * and pending, with the runtime's error, which ends in @why; the kubelet tries again every 10 to 15
 * s. (The kubelet asks once in the life of a pod, so the agent has it replaced: waiting.h.) A
 * refusal would fail the pod, and its controller would create the next one at once. 0 or -ENOMEM.
 */
int container_spec_waits(V1beta1__ContainerAllocateResponse **out, const char *why);

/* True: the GPU's mode is mps, mps.required is set, and its daemon does not answer. */
bool container_spec_lacks_mps(const struct config *config, const struct gpu *gpu);
