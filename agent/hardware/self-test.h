/* Whether hardware preemption works on a GPU, as weir-selftest found out: by trying. It takes a
 * second. While the driver and the boot are the same, and an MPS daemon is there or not as before,
 * the result of an earlier agent holds; so an agent that starts again does not disturb the clients.
 */
#pragma once

#include "common/folder.h"
#include "common/program-run.h"

enum self_test_state {
	SELF_TEST_OFF, /* not wanted, as `reason` says */
	SELF_TEST_RUNS,
	SELF_TEST_WORKS,
	SELF_TEST_FAILED,
};

#define SELF_TEST_REASON 128

struct self_test {
	enum self_test_state state;
	char reason[SELF_TEST_REASON]; /* one line for people; empty: it works */
	char gpu[64];                  /* as NVML names it */
	char key[160];                 /* of this boot and this driver */
	const struct folder *folder;
	struct program_run run;
	void (*done)(struct self_test *test);
};

/* The result, if it is known; else starts weir-selftest, and calls @done when that has ended. @gpu:
 * its id, and its folder's name in @folder, which outlives @test. @libraries: a folder with the
 * driver's libraries; NULL: where the loader finds them. Logs the result. */
void self_test_begin(struct self_test *test, struct loop *loop, const struct folder *folder,
		     const char *gpu, const char *libraries, void (*done)(struct self_test *test));
/* No test, and the reason. Ends one that runs. */
void self_test_off(struct self_test *test, const char *reason);
