/* For tests of libweir's own sources, on a driver that only records, with an agent that the test
 * plays. */
#pragma once

#include "fake-agent.h"
#include "null-driver.h"

#include "client/client.h"
#include "client/link.h"
#include "client/request.h"
#include "gates/demand.h"
#include "gates/gate.h"
#include "gates/priority.h"
#include "gates/waiting.h"
#include "launch/learn.h"
#include "launch/preempt.h"
#include "measure/sample.h"
#include "preempt/first-launch.h"

#define CONTEXT(n)   ((CUcontext)(uintptr_t)(0x10000 + 0x100 * (n)))
#define STREAM(n, s) ((CUstream)(uintptr_t)(0x10000 + 0x100 * (n) + 8 * (s)))

extern struct fake_agent agent;
extern struct null_driver *driver;
extern struct client *client; /* of the last context */

/* For main(), before cmocka. */
void driver_load(void);
/* For cmocka: the agent's life. */
int agent_begin(void **state);
int agent_finish(void **state);

/* A new context, current, whose first launch has been welcomed; its number. */
unsigned context_welcomed(uint8_t level); /* with bit 1 */
unsigned context_welcomed_as(uint8_t level, uint8_t bit);
/* The next launch is measured. */
void measure_next(void);
/* The agent's hold word, for an hour. */
void hold(uint32_t is);
/* The worker has asked the driver at several looks meanwhile; there is work outstanding. */
void looks(void);
/* Destroys the context, and ends its connection. */
void context_gone(unsigned n);
