/* The Container Device Interface: a file that names our GPUs as devices and tells container
 * runtimes what each device adds to a container.
 *
 *   weir.dev/gpu=GPU-<uuid>    the GPU's device node, the driver's other nodes, and the driver's
 * libraries if the plugin mounts them
 *
 * Weir's own files are not in it: they depend on the container, not on the GPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct config;
struct driver;
struct gpu;

/* Formats the specification of @n_gpus GPUs, for the caller to free. 0 or -ENOMEM. */
int cdi_format(char **out, const struct config *config, const struct driver *driver,
	       const struct gpu *gpus, unsigned n_gpus);
/* Writes @text atomically to the file of @kind that runtimes read, unless it is there already. 0 or
 * a negative errno; @path gets the file's name, for messages. */
int cdi_write(char *path, size_t path_size, const struct config *config, const char *kind,
	      const char *text);
/* Both, if the kind is Weir's own. */
int cdi_publish(char *path, size_t path_size, const struct config *config,
		const struct driver *driver, const struct gpu *gpus, unsigned n_gpus);
