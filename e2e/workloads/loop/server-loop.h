/* Parameters of the servers in server-loop.cu. */
#pragma once

#include <stdint.h>

#define ADDRESS_BYTES 32

struct server_loop {
	char address[ADDRESS_BYTES];
	int32_t listener; /* -1: nobody listens yet */
	uint32_t size;    /* of the service */
	uint32_t request_bytes, reply_bytes;
	uint32_t slots;             /* requests of a block at a time */
	uint64_t requests, replies; /* device addresses; each block has @slots of each */
	uint64_t table;             /* of kv */
	unsigned long long answered;
};
