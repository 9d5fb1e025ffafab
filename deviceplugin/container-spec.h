/* What a container needs for the GPUs that it was granted: environment, mounts, device nodes.
 *
 *   shares of a GPU   libweir at its versioned path, /etc/ld.so.preload that names it, the agent's
 *                     directory, and what a whole GPU gets
 *   whole GPUs        device nodes and driver, nothing of Weir
 *
 * The kubelet keeps the answer for the life of the pod and uses it again when a container restarts,
 * so every path in it must stay valid as long: hence the versioned library.
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

/* True: its mode is mps, the configuration demands the daemon, and it does not answer. */
bool container_spec_lacks_mps(const struct config *config, const struct gpu *gpu);
