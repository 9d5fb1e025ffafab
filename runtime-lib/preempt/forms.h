/* The forms of kernels, from the wish to the code: the worker finds the kernel's PTX (code.h), has
 * the link ask the agent (request.h), loads the answer (rewrite.h), and publishes it in the
 * kernel's record.
 *
 * If a launch waits for the forms, the one that leaves soonest is asked for first, since all of
 * them take three times as long to compile: `soonest`. Then all are asked for. Of a kernel that may
 * be launched later (ahead.h) only that form is asked for. */
#pragma once

#include "preempt/function.h"

/* Worker: asks for forms, once; later calls cost little. */
void forms_want(struct function *function);
/* Worker: asks for the form that leaves soonest, behind all kernels that are launched. False: forms
 * were asked for. */
bool forms_want_ahead(struct function *function);

/* Any thread begins or ends to wait for forms in front of a launch. Meanwhile code may be loaded
 * although gates are closed, if nothing of the client runs. */
void forms_await(const struct client *client, bool begins);
bool forms_are_awaited(const struct client *client);

/* Columns of the table. */
void forms_look(struct client *client, struct tick *tick);
void forms_drive(struct client *client, struct tick *tick);
void forms_forget(struct client *client);
void forms_fork(void);
