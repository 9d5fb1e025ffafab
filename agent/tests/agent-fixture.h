/* A whole agent in the test's process, and clients that speak the protocol. The test sets the
 * identity of clients and the pods of the API server: the linker replaces the real functions by the
 * fixture's. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/agent.h"
#include "kubernetes/pods.h"

#include "weir/base.h"
#include "weir/protocol.h"

extern struct agent agent;
extern char rig_folder[]; /* sockets and state */

/* Identity of the next connection; identify_error: -errno if it cannot be found out. */
extern struct container_identity next_identity;
extern int identify_error;
/* The only pod of the API server; NULL: not connected. Call tell_changed() after a change. */
extern struct pod *known_pod;
extern pods_changed_fn *tell_changed;
extern unsigned rig_hurried; /* calls of pods_hurry() */
extern useconds_t rig_delay; /* for this long rig_start(false) lets clients wait for the socket */
extern uint64_t rig_delayed; /* when that was over */

/* A pod "web" with the container "main", for known_pod. The caller frees it. */
struct pod *rig_pod(const char *namespace_, const char *priority);
void rig_start(bool standalone);
/* Handles events until none is ready. */
void rig_pump(void);
/* Handles events until @condition holds. */
#define rig_wait(condition)                                           \
	do {                                                          \
		uint64_t end_ = loop_now() + 30 * NS_PER_S;           \
		while (!(condition)) {                                \
			assert_true(loop_now() < end_);               \
			assert_true(loop_step(&agent.loop, 10) >= 0); \
		}                                                     \
	} while (0)
/* The answer to GET @path, with its headers. */
void rig_fetch(const char *path, char *answer, size_t size);
/* The first series that begins with @name has the @value. */
void rig_expect_metric(const char *text, const char *name, const char *value);
/* The answer to a request over the control socket. */
void rig_ask(const char *request, char *answer, size_t size);
/* The answer to the command `status`, which the caller frees. */
char *rig_status(void);

int rig_make_folder(void **state);
int rig_remove_folder(void **state);
int rig_set_up(void **state);
int rig_tear_down(void **state);
#define AGENT_TEST(name)       cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)
#define RUN_AGENT_TESTS(tests) cmocka_run_group_tests(tests, rig_make_folder, rig_remove_folder)

/* A client that does what libweir does. */
struct fake {
	int fd;
	uint8_t level, bit;
	struct weir_control_page *control;
	struct weir_status_page *status;
	struct weir_demand_page *wait, *below[WEIR_DEMAND_LEVELS];
	int wait_fd;
};

int fake_connect(void);
struct weir_hello fake_hello(uint8_t claim);
/* -EAGAIN: no message. */
int fake_receive(int fd, union weir_message *message, int *fds);
/* Reads WELCOME. */
void fake_welcome(struct fake *fake);
/* Maps the pages of a LEVEL message. */
void fake_take_level(struct fake *fake, uint8_t level, const int *fds);
/* Has sent HELLO, and not read the answer. */
struct fake fake_claim(uid_t uid, uint8_t claim);
struct fake fake_join_claiming(uid_t uid, uint8_t claim);
struct fake fake_join(uid_t uid);
void fake_leave(struct fake *fake);
void fake_demand(const struct fake *fake);

/* Expects REFUSED with a text, then the end of the connection. */
void expect_refused(int fd, enum weir_refusal reason);
