/* A file that is read into device memory: shared by device code and host. */
#pragma once

#include <stdint.h>

struct read_job {
	char path[256];
	uint64_t bytes, chunk;     /* of the file; of a request */
	uint64_t total;            /* requests: passes over the file */
	uint64_t to;               /* device address; the file's place is the memory's */
	unsigned long long ticket; /* the next request */
	uint32_t slots;            /* requests of a block at a time */
	int32_t flags;             /* to open the file with */
};
