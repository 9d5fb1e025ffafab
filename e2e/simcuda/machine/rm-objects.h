/* The resource manager's objects: clients, devices, channel groups and channels.
 *
 * They lie in the shared file, in the row of the process that made their client, so any process
 * that has a descriptor of the same node may name them. They end with that process; the close of a
 * descriptor cannot be seen. Call with the lock. Those that return a number return a status. */
#pragma once

#include "simcuda/machine/rm-call.h"

#include "weir/rm.h"

/* Makes @client the call's. It belongs to one descriptor. */
uint32_t rm_objects_enter(struct rm_call *call, uint32_t client);
/* An object of the call's client; NULL: there is none. */
struct shared_object *rm_objects_find(const struct rm_call *call, uint32_t handle);
struct shared_object *rm_objects_find_class(const struct rm_call *call, uint32_t handle,
					    uint32_t class);

/* Requests. The handle of a new object is in @p->object then. */
uint32_t rm_objects_alloc(struct rm_call *call, struct rm_alloc *p);
uint32_t rm_objects_free(struct rm_call *call, const struct rm_free *p);

/* Call when channels of the group @handle come, go, or are disabled. A compute group is stopped
 * when all its channels are disabled. */
void rm_objects_update(struct rm_call *call, uint32_t handle);
