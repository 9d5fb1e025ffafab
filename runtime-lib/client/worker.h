/* The worker: one thread for the process, started with the first client. It makes the driver calls
 * that no application thread should wait for. What it does stands in the table of subsystems: for
 * each client it looks, asks the driver if there is a reason, works, and sleeps until the next
 * look. It never waits for the agent. */
#pragma once

#include "client/client.h"

struct tick;

#define WORKER_SPIN (150 * NS_PER_US) /* waking up takes up to that long in a virtual machine */

/* Starts it, if there is none. By one thread at a time. 0 or an errno. */
int worker_start(void);

/* Look at everything soon. A system call if the worker sleeps deeply, else one load. */
void worker_wake(void);
/* Look at everything now, also if it has just looked. Up to two system calls. */
void worker_alarm(void);
/* The same, and ask the driver how far @client is. */
void worker_hurry(const struct client *client);

/* For a look: waits for the moment @planned, 0: none, unless another thread changes it meanwhile.
 * If it is farther away than WORKER_SPIN, asks for a look then. Returns the moment when it has
 * come, else 0. */
uint64_t worker_await(const _Atomic uint64_t *planned, struct tick *tick);

#define GRACE_WITHIN (5 * NS_PER_S)

/* Returns when the worker has finished what it may have begun before this call. The caller has
 * published what the worker must not use from now on: a stream gone, a capture begun, a context
 * that ends.
 *
 * False: the driver has not let the worker go for GRACE_WITHIN. What it waits for may wait for the
 * caller's thread: the queue of a stream is full, which a kernel blocks until this thread writes a
 * word. So the caller must go on, and must not free what the worker may still use. */
bool worker_grace(void);
/* A client ends (CLIENT_ENDING): returns when the worker does not look at it any more, with or
 * without the driver. False: it still does after GRACE_WITHIN, and may go on with the client's
 * state. */
bool worker_leave(const struct client *client);

/* The same without waiting: a number for what the worker does now, and whether it has finished
 * that. */
uint32_t worker_visit(void);
bool worker_left(uint32_t visit);

/* Between these the worker makes no driver call. They nest. */
void worker_pause(void);
void worker_resume(void);

/* The process ends. The driver may have taken itself down already. */
bool worker_stopped(void);

/* In a forked child: there is no worker. */
void worker_fork(void);
