/* Clients: one for each CUDA context of this process that launches something. This is a client's
 * identity alone. Each subsystem keeps its own state, one entry for each client at client->index,
 * and is a row of the table in client/subsystem.h.
 *
 * The first launch in a context sets its client up, on the launching thread. */
#pragma once

#include "shim/driver.h"

#define CLIENTS_MAX 1024

enum client_state {
	CLIENT_FREE,
	CLIENT_NEW, /* one thread sets it up */
	CLIENT_LIVE,
	CLIENT_ENDING, /* subsystems forget it; its slot is not free yet */
	CLIENT_DEAD,   /* its context has ended; another may take the slot */
};

struct level_binding;

struct client {
	_Atomic int state;
	uint32_t index; /* in the table */
	CUcontext context;
	/* NULL: no agent yet, all launches go straight to the driver. Replaced by the worker only.
	 * A binding is never freed once it was here: a launch may still read it. */
	_Atomic(const struct level_binding *) binding;
	CUdevice device;
	CUuuid gpu;
	bool concurrent; /* its kernels run at the same time as other clients' (MPS) */
};

extern struct client clients[CLIENTS_MAX];
extern _Atomic uint32_t clients_used; /* slots that were ever taken; the others are free */

#define client_for_each(c)                                                                \
	for (struct client * (c) = clients, *end_ = clients + atomic_load(&clients_used); \
	     (c) < end_; (c)++)

/* Declares NAME_of(client), a subsystem's struct NAME for a client, in NAME_table[CLIENTS_MAX]. */
#define PER_CLIENT(name)                                                  \
	extern struct name name##_table[CLIENTS_MAX];                     \
	static inline struct name *name##_of(const struct client *client) \
	{                                                                 \
		return &name##_table[client->index];                      \
	}

/* The client of any context, set up if there was none; waits if another thread does that. NULL: not
 * governed, because the table is full or the context is unusable. */
struct client *client_of(CUcontext context);

/* The client of a context if it has one. */
struct client *client_find(CUcontext context);

/* The client of the current context if it has one. */
struct client *client_here(void);

/* A device's primary context, if there is one now. */
CUcontext client_primary(CUdevice device);

/* Before the context ends: no thread of ours uses it after the return. NULL is fine. */
void client_remove(struct client *client);

/* In a forked child: forgets all clients without a word to agent or driver. */
void client_fork(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t client_now(void);
