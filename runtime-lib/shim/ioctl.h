/* Watches libcuda's ioctls, and remembers the compute channel groups that it makes. libcuda calls
 * libc's ioctl by name, so it finds ours, which passes every call on and looks only at those of the
 * resource manager that make or free something (weir/rm.h). */
#pragma once

#include <stddef.h>

#include "weir/channel-group.h"

/* An ioctl of @fd has succeeded. */
void channel_groups_watch(int fd, unsigned long request, const void *argument);

/* The calling thread has made @context. Groups that it made before belong to it. */
void channel_groups_bind(const void *context);

/* @changed is called after each change of what channel_groups_next() tells, in a thread that is in
 * a call of libcuda. */
void channel_groups_notify(void (*changed)(void));

/* Counts changes of what channel_groups_next() tells. */
uint32_t channel_groups_changes(void);

/* The first group of @context from place *@at on; *@at becomes the place behind it. @fd: libcuda's
 * descriptor of the control device, which stays libcuda's. False: there is none. */
bool channel_groups_next(const void *context, size_t *at, struct channel_group *group, int *fd);

/* In a forked child: the descriptors are the parent's. */
void channel_groups_fork(void);
