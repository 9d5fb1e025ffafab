/* The NVIDIA driver as it lies on the host: which files a container needs of it, and whether we are
 * the one to mount them.
 *
 * A container runtime of NVIDIA's does that itself when NVIDIA_VISIBLE_DEVICES is set. Where it is
 * not the default runtime we mount the driver's libraries into two directories that between them
 * are on the default search path of Debian's and Red Hat's loader, so that no environment variable
 * of the image has to change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

/* Below the container's root. */
#if defined(__aarch64__)
#define DRIVER_TRIPLET "aarch64-linux-gnu"
#else
#define DRIVER_TRIPLET "x86_64-linux-gnu"
#endif
#define DRIVER_DIR_DEBIAN "/usr/lib/" DRIVER_TRIPLET
#define DRIVER_DIR_REDHAT "/usr/lib64"
#define DRIVER_SMI_FILE   "/usr/bin/nvidia-smi"

#define DRIVER_FILES_MAX 64u

struct driver {
	char *libraries; /* directory on the host with libcuda.so.1; NULL: none found */
	char *names[DRIVER_FILES_MAX]; /* of the libraries in it that containers need */
	size_t n_names;
	char *smi;  /* nvidia-smi on the host, or NULL */
	bool mount; /* ours to mount */
};

int driver_init(struct driver *driver, const struct config *config);
void driver_deinit(struct driver *driver);

/* Device nodes beside the GPUs' own, NULL at the end; only the first exists with every driver. */
extern const char *const driver_nodes[];
#define DRIVER_NODE_MAX 32u
/* The node of the GPU of that minor number. False: it has none, as simulated ones. */
bool driver_gpu_node(char out[DRIVER_NODE_MAX], const struct config *config, int minor);
/* Each file of the driver that is ours to mount, on the host and in the container. */
void driver_each_file(const struct driver *driver,
		      void (*each)(void *owner, const char *host, const char *container),
		      void *owner);

/* Whether @path exists on the host. */
bool driver_host_has(const struct config *config, const char *path);
/* NVML's library as this process sees it, for the caller to free; NULL: leave it to the loader. */
char *driver_nvml(const struct driver *driver, const struct config *config);
