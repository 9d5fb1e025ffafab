/* Reports when a file may have changed: it was written or replaced, or a link that leads to it was
 * replaced, as in a ConfigMap's folder (`FILE -> ..data/FILE`, `..data -> ..TIME`). It watches the
 * folder and waits until the folder has been quiet for a moment. If the folder disappears, it looks
 * for it every second.
 *
 * Limit: if @path is a link into another folder, changes there are not seen. */
#pragma once

#include <stdbool.h>

#include "weir/loop.h"

struct file_watch;
typedef void file_watch_fn(struct file_watch *watch);

/* Embedded in its owner. */
struct file_watch {
	struct loop *loop;
	const char *path;
	struct loop_watch folder;
	bool watching;
	struct loop_timer settled;
	file_watch_fn *changed;
};

/* @path must outlive the watch. 0 or a negative errno. */
int file_watch_init(struct file_watch *watch, struct loop *loop, const char *path,
		    file_watch_fn *changed);
/* Accepts a zeroed watch. */
void file_watch_deinit(struct file_watch *watch);
