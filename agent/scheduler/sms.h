/* SMs of a client, as `weirctl top`, metrics and explanations show them. Each function returns
 * SMS_UNKNOWN if it cannot be said. */
#pragma once

#include <stdint.h>

struct client;

#define SMS_UNKNOWN UINT64_MAX /* it is time-sliced, or its libweir does not tell */

/* SMs that lower-level clients must leave to the client now. */
uint64_t sms_needed(const struct client *client);
/* SMs on which its kernels can run. MPS may give its process only a part. */
uint64_t sms_given(const struct client *client);
/* SMs that higher-level clients leave to it now. */
uint64_t sms_left(const struct client *client);
