/* Mode mps-per-level: a whole agent, and MPS daemons played by e2e/simcuda's mps-control, on a
 * driver that only records. A tenant's uid decides on its level. */
#pragma once

#include "agent-fixture.h"

#define LOW    1 /* uids */
#define NORMAL 2
#define HIGH   3

extern struct fake first; /* a client at NORMAL that makes the GPU known */
extern struct gpu *gpu;
extern char program[]; /* mps-control */

/* What the driver was told last of any channel group. */
extern _Atomic uint64_t driver_slice;
extern _Atomic bool driver_stopped;

/* A file of the level's daemon. Valid until the next call. */
const char *path_of(unsigned level, const char *name);
struct mps_daemon *daemon_of(uint8_t level);
/* A command for the level's daemon, about a process. */
void tell(unsigned level, const char *command, int pid);

/* A process's question; the connection. */
int ask(uid_t uid);
int ask_with(uid_t uid, const uint8_t uuid[16]);
/* The final answer; *@pipe: its descriptor. *@later: it had to wait. */
enum weir_pipes_status answer(int fd, int *pipe, bool *later);
/* The descriptor is the socket of the level's daemon. */
bool is_socket_of(int pipe, unsigned level);
/* Joins the server of the level; true: it had to wait. */
bool join(uid_t uid, unsigned level);

int pipes_set_up(void **state);
int pipes_tear_down(void **state);
int pipes_find_program(void **state);
#define PIPES_TEST(name)       cmocka_unit_test_setup_teardown(name, pipes_set_up, pipes_tear_down)
#define RUN_PIPES_TESTS(tests) cmocka_run_group_tests(tests, pipes_find_program, rig_remove_folder)
