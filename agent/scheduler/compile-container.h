/* What the compile service counts by container. It is in this room because a tenant holds it. */
#pragma once

#include <stdint.h>

/* Zero at first. */
struct compile_container {
	uint64_t served;     /* number of the last job started for it */
	unsigned n_requests; /* of all its clients */
};
