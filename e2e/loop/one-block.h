/* The device side of a loop in one block on the interpreter, without a host: its memory, and how
 * often the kernel touched each part. */
#pragma once

#include "simcuda/tests/ptx-fixture.h"

#include "weir/loop-abi.h"

#define CALLBACKS 4u
#define RING      8u
#define THREADS   64u
#define POINTS    1000u
#define BUFFER    (16u << 20)
/* Far more than a kernel needs here: one that waits for ever fails, and does not hang. */
#define INSTRUCTIONS 50000000u

/* The memory that a loop has, and how often the kernel touched each part. */
enum part { DEVICE, BLOCK, HOST, OUT, PARTS };

struct host {
	struct weir_loop_request requests[CALLBACKS];
	uint64_t doorbells[RING], values[CALLBACKS], demand;
	_Alignas(16) uint64_t answers[RING];
	uint8_t data[CALLBACKS][WEIR_LOOP_INLINE];
	struct weir_loop_report report;
	uint32_t hold;
};

extern struct world {
	struct ptx_module *module;
	_Alignas(512) struct weir_loop_device device;
	struct weir_loop_block block;
	struct host host;
	uint64_t *out;
	struct { /* of kernels.cu */
		struct weir_loop_args args;
		uint64_t *out;
		const char *text;
		uint64_t n;
	} params;
	uint64_t touched[PARTS];
	uint32_t threads;
	/* When the launch loaded its last callback, and when it stored its first. */
	uint64_t loaded, stored;
	bool began; /* its callbacks can run */
} w;

/* For each test: a loop that has not run. It looks at device memory as seldom as can be, and polls
 * at once. */
int begin(void **state);

/* One launch. The time that it ran is counted in instructions of the block's warps. 0, or -ETIME:
 * after @instructions. */
int launch(const char *kernel, uint64_t n, uint64_t instructions);

/* The kernel leaves, and reports. */
void must_leave(const char *kernel, uint64_t n, uint32_t reason);

/* For groups: the kernels of LOOP_KERNELS, and memory. */
int one_block_begin(void **state);
int one_block_end(void **state);
