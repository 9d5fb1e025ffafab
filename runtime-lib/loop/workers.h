/* A few threads for operations that block. */
#pragma once

#include "loop/io.h"

struct workers;

/* At most @threads, which start when they are needed, and @spare more, which work only while four
 * operations wait and workers_hurry() says so. From the first operation on, or from workers_wake(),
 * a thread that has nothing to do watches for the next operation for @watch_us before it sleeps: it
 * then begins at once, and the caller need not wake it.
 * @event: an eventfd, which workers_watch() is about; stays the caller's. -ENOMEM. */
int workers_new(struct workers **out, unsigned threads, unsigned spare, uint32_t watch_us,
		int event);

/* Starts all now, but for the spare ones: an operation that waits for its thread to start is 100 us
 * late. */
void workers_start(struct workers *workers);

/* Operations come soon: the threads watch for them already. */
void workers_wake(struct workers *workers);

/* Whether spare threads are of use from now on; at first they are not. */
void workers_hurry(struct workers *workers, bool hurried);

/* Nothing is submitted. NULL is fine. */
void workers_free(struct workers *workers);

/* Without a thread the operation fails with -EAGAIN. */
void workers_submit(struct workers *workers, struct io *io);
struct io *workers_reap(struct workers *workers);

/* Before a sleep: the next operation that ends writes the eventfd. True: one has ended already. */
bool workers_watch(struct workers *workers);

/* False: a thread has begun with it, or it is not here. */
bool workers_cancel(struct workers *workers, struct io *io);
