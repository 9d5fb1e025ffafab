/* The worker: one thread for the process, started with the first client. It makes the driver calls
 * that no application thread should wait for: reads samples, sees streams run dry, settles changes
 * of level, writes status pages. It never blocks on the agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Starts it, if there is none. By one thread at a time. 0 or an errno. */
int worker_start(void);

/* Looks at everything soon. A system call if the worker sleeps deeply, else one load. */
void worker_wake(void);

/* After something was published (a stream gone, a capture begun, a context dead): returns when the
 * worker is through with what it may have begun before. */
void worker_grace(void);

/* The same without waiting: what the worker may have begun by now, and whether it is through with
 * that. */
uint32_t worker_visit(void);
bool worker_left(uint32_t visit);

/* Between these the worker makes no driver call. They nest. */
void worker_pause(void);
void worker_resume(void);

/* The process ends. The driver may have taken itself down already. */
bool worker_stopped(void);

/* In a forked child: there is no worker. */
void worker_forget(void);
