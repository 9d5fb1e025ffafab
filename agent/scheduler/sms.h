/* SMs of a client, for people: in `weirctl top`, metrics and explanations. */
#pragma once

#include <stdint.h>

struct client;

#define SMS_UNKNOWN UINT64_MAX /* it is time-sliced, or its libweir does not tell */

/* That the client's work needs from lower-level clients now. */
uint64_t sms_needed(const struct client *client);
/* On which its kernels run at most: MPS may give its process a part only. */
uint64_t sms_given(const struct client *client);
/* That higher-level clients leave to it now. */
uint64_t sms_left(const struct client *client);
