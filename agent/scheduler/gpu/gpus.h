/* The GPUs of the node: those that NVML lists. Without NVML those that clients name, up to a limit.
 */
#pragma once

#include "config/config.h"
#include "scheduler/gpu/gpu.h"

#define GPUS_MAX 64

struct gpus {
	struct loop *loop;
	struct folder root;
	struct freezer freezer;
	bool listed;         /* by NVML, so there are no others */
	char libraries[256]; /* folder of the driver's libraries; empty: where the loader finds them
			      */
	int cuda;            /* the driver's version, 13000: CUDA 13.0; 0: not known */
	unsigned n;
	struct gpu *all; /* hash by uuid */
};

#define GPUS_NONE ((struct gpus){.root = {-1, -1}, .freezer = {.lock = -1}})

/* Lists the GPUs, and opens the demand pages that an earlier agent left. @nvml: path; may be empty.
 * A node without NVML is no error. */
int gpus_init(struct gpus *gpus, struct loop *loop, const char *state_dir, const char *nvml);
void gpus_deinit(struct gpus *gpus);

/* Whether all GPUs run machine code from the compiler of CUDA 13.0. That needs a driver of
 * CUDA 13.0 or later. The simulated GPU runs PTX alone. */
bool gpus_take_machine_code(const struct gpus *gpus);

enum gpus_get {
	GPUS_OK = 0,
	GPUS_UNKNOWN = 1, /* no such GPU here, or too many */
};
/* The GPU with its demand pages open; or a negative errno. */
int gpus_get(struct gpus *gpus, const uint8_t uuid[16], struct gpu **out);

/* The settings in force for @gpu. */
struct config_gpu_settings gpu_settings(const struct config *config, const struct gpu *gpu);
