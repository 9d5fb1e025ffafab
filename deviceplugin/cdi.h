/* The Container Device Interface: a file by which container runtimes know our GPUs as devices with
 * names, and what each brings into a container.
 *
 *   weir.dev/gpu=GPU-<uuid>    its device node, and what all have: the driver's other nodes, and
 * its libraries where they are ours to mount
 *
 * Weir's own part of a grant is not in it: that is the container's, not the GPU's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct config;
struct driver;
struct gpu;

/* The specification of @n_gpus GPUs, for the caller to free. 0 or -ENOMEM. */
int cdi_format(char **out, const struct config *config, const struct driver *driver,
	       const struct gpu *gpus, unsigned n_gpus);
/* Puts @text where runtimes look for it, unless it is there: whole or not at all, for everybody to
 * read. 0 or a negative errno; @path has the file's name, for messages. */
int cdi_write(char *path, size_t path_size, const struct config *config, const char *text);
