/* Tells when a file may have other content: it was written, or renamed into its place, or one of
 * the links that lead to it was, as in a ConfigMap's folder (`FILE -> ..data/FILE`, `..data ->
 * ..TIME`). It watches the folder, and waits until that has been quiet for a moment. A folder that
 * goes and comes is looked for each second.
 *
 * Not seen: a change in another folder, where @path is a link into one. */
#pragma once

#include <stdbool.h>

#include "weir/loop.h"

struct file_watch;
typedef void file_watch_fn(struct file_watch *watch);

/* To be embedded. */
struct file_watch {
	struct loop *loop;
	const char *path;
	struct loop_watch folder;
	bool watching;
	struct loop_timer settled;
	file_watch_fn *changed;
};

/* @path stays the caller's. 0 or a negative errno. */
int file_watch_init(struct file_watch *watch, struct loop *loop, const char *path,
		    file_watch_fn *changed);
/* Accepts a zeroed one. */
void file_watch_deinit(struct file_watch *watch);
