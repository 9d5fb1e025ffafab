/* The agent's side of MPS daemons, played by e2e/simcuda's mps-control: a process like the real
 * one. */
#pragma once

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"
#include "mps/mps.h"

#define GPU_A     "GPU-00000000-0000-0000-0000-00000000000a"
#define GPU_B     "GPU-00000000-0000-0000-0000-00000000000b"
#define WITHIN_MS 30000 /* on any machine */

extern char folder[], program[PATH_MAX]; /* of the test; the daemon's */
extern struct loop loop;
extern struct config config;
extern struct mps mps;

/* Once; and for each test. */
int make_folder(void **state);
int remove_folder(void **state);
int mps_set_up(void **state);
int mps_tear_down(void **state);
#define MPS_TEST(name) cmocka_unit_test_setup_teardown(name, mps_set_up, mps_tear_down)

/* Of a file in the folder of @gpu's daemon. Valid until the next call. */
const char *path_of(const char *gpu, const char *name);
bool exists(const char *gpu, const char *name);
void make(const char *gpu, const char *name);

struct mps_daemon *daemon_of(const char *gpu);
/* Wants a daemon for @gpu, and waits until it is there. */
struct mps_daemon *have_daemon(const char *gpu);
bool lives(pid_t pid);

/* Handles events until the condition holds. */
#define AWAIT(condition)                                             \
	do {                                                         \
		uint64_t end_ = loop_now() + WITHIN_MS * 1000000ull; \
		while (!(condition) && loop_now() < end_)            \
			assert_true(loop_step(&loop, 100) >= 0);     \
		assert_true(condition);                              \
	} while (0)
