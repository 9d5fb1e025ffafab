/* What a container with a claim gets, as CDI devices beside the GPU's own (cdi.h):
 *
 *   weir.dev/claim=GPU-<uuid>         a part of the GPU: what container-spec.h gives for shares
 *   weir.dev/claim=GPU-<uuid>-whole   the whole GPU, without Weir
 *
 * They do not depend on the claim, so nothing has to be removed when a claim ends. */
#pragma once

#include <stdbool.h>

#include "weir/claims.h"

struct config;
struct driver;
struct gpu;
struct inventory;

#define CLAIM_CDI_MAX 256u /* of an id, with NUL */

/* Writes the specifications that runtimes read. False: @error says why not. */
bool claim_cdi_publish(const struct config *config, const struct driver *driver,
		       const struct inventory *inventory, char *error, size_t error_size);
/* The two ids of a device that a claim has. */
void claim_cdi_ids(char out[2][CLAIM_CDI_MAX], const struct config *config, const struct gpu *gpu,
		   bool whole);
