/* A whole agent in this process, and clients that speak the protocol.
 *
 * Who a client is, and what the API server knows of its pod, says the test (the linker puts the
 * fixture's functions in the place of the real ones). */
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
extern char rig_folder[]; /* with its sockets and its state */

/* Of whoever connects next; identify_error: cannot be found out, -errno. */
extern struct container_identity next_identity;
extern int identify_error;
/* All that the API server knows; NULL: it is not connected. To be told by tell_changed(). */
extern struct pod *known_pod;
extern pods_changed_fn *tell_changed;
extern unsigned rig_hurried; /* how often news of pods were asked for */

void rig_start(bool standalone);
/* Everything that is ready, and what becomes ready by it. */
void rig_pump(void);
/* The answer to GET @path, with its headers. */
void rig_fetch(const char *path, char *answer, size_t size);

int rig_make_folder(void **state);
int rig_remove_folder(void **state);
int rig_set_up(void **state);
int rig_tear_down(void **state);
#define AGENT_TEST(name)       cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)
#define RUN_AGENT_TESTS(tests) cmocka_run_group_tests(tests, rig_make_folder, rig_remove_folder)

/* A client as libweir is one. */
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
/* -EAGAIN: nothing has come. */
int fake_receive(int fd, union weir_message *message, int *fds);
/* Reads the answer to a hello. */
void fake_welcome(struct fake *fake);
/* What LEVEL brought. */
void fake_take_level(struct fake *fake, uint8_t level, const int *fds);
/* Has said its hello, and no more. */
struct fake fake_claim(uid_t uid, uint8_t claim);
struct fake fake_join_claiming(uid_t uid, uint8_t claim);
struct fake fake_join(uid_t uid);
void fake_leave(struct fake *fake);
void fake_demand(const struct fake *fake);

/* REFUSED comes, with a text, then the end. */
void expect_refused(int fd, enum weir_refusal reason);
