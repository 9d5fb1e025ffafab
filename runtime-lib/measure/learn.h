/* What a sample teaches: how long its kernel takes, how good predictions are, and in which form the
 * kernel is to run. */
#pragma once

#include "client/client.h"

/* Worker, with the context current: for sampler_read(); @client is a struct client. */
void learn_sample(void *client, const struct sample *sample, uint64_t ns);
/* The same: it has run for @ns, and goes on. */
void learn_runs(void *client, const struct sample *sample, uint64_t ns);
