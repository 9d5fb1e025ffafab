/* The NVIDIA driver on the host: the files that a container needs, and whether the plugin mounts
 * them.
 *
 * If NVIDIA's container runtime is the default, it mounts them itself. Otherwise the plugin mounts
 * the libraries into two folders, which are on the default search paths of Debian's and Red Hat's
 * loaders. So no environment variable of the image has to change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

#include "weir/arch.h"

/* Under the container's root. */
#define DRIVER_DIR_DEBIAN "/usr/lib/" ARCH_TRIPLET
#define DRIVER_DIR_REDHAT "/usr/lib64"
#define DRIVER_SMI_FILE   "/usr/bin/nvidia-smi"

#define DRIVER_FILES_MAX 64u

struct driver {
	char *libraries;               /* folder on the host with libcuda.so.1; NULL: not found */
	char *files[DRIVER_FILES_MAX]; /* the libraries in it that containers need */
	size_t n_files;
	char *smi;  /* nvidia-smi on the host, or NULL */
	bool mount; /* the plugin mounts these files */
};

int driver_init(struct driver *driver, const struct config *config);
void driver_deinit(struct driver *driver);

/* Device nodes that all GPUs share, then NULL. Only the first exists with every driver. */
extern const char *const driver_nodes[];
#define DRIVER_NODE_MAX 32u
/* The device node of the GPU with that minor number. False: it has none (a simulated GPU). */
bool driver_gpu_node(char out[DRIVER_NODE_MAX], const struct config *config, int minor);
/* Calls @each for every file that the plugin mounts. */
void driver_each_file(const struct driver *driver,
		      void (*each)(void *owner, const char *host, const char *container),
		      void *owner);

/* Whether @path exists on the host. */
bool driver_host_has(const struct config *config, const char *path);
/* The path of NVML's library in this process's file system, for the caller to free. NULL: let the
 * loader search. */
char *driver_nvml(const struct driver *driver, const struct config *config);
