#include "weir/file-watch.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"
#include "weir/log.h"

#define SETTLE 100000000ull
#define RETRY  1000000000ull
#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF)

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void folder_changed(struct loop_watch *folder, const struct inotify_event *event)
{
	struct file_watch *watch = container_of(folder, struct file_watch, folder);

	if (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) {
		loop_watch_deinit(folder);
		watch->watching = false;
		loop_timer_set(&watch->settled, RETRY, 0);
		return;
	}
	/* Names that begin with two dots are a ConfigMap's links. */
	if ((event->mask & IN_Q_OVERFLOW) ||
	    (event->len && (strcmp(event->name, name_of(watch->path)) == 0 ||
			    strncmp(event->name, "..", 2) == 0)))
		loop_timer_set(&watch->settled, SETTLE, 0);
}

static void look(struct file_watch *watch)
{
	const char *name = name_of(watch->path);
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", (int)(name - watch->path), watch->path);
	int r = loop_watch_init(&watch->folder, watch->loop, *folder ? folder : ".", EVENTS,
				folder_changed);
	watch->watching = r == 0;
	if (r == 0)
		return;
	log_limited(LOG_WARNING, 3600, "%s: nobody tells if it changes, for now: %s%s", watch->path,
		    strerror(-r), loop_watch_hint(r));
	loop_timer_set(&watch->settled, RETRY, 0);
}

static void settled(struct loop_timer *timer)
{
	struct file_watch *watch = container_of(timer, struct file_watch, settled);

	if (!watch->watching) {
		look(watch);
		if (!watch->watching)
			return;
	}
	watch->changed(watch);
}

int file_watch_init(struct file_watch *watch, struct loop *loop, const char *path,
		    file_watch_fn *changed)
{
	*watch = (struct file_watch){.loop = loop, .path = path, .changed = changed};
	int r = loop_timer_init(&watch->settled, loop, settled);
	if (r < 0)
		return r;
	look(watch);
	return 0;
}

void file_watch_deinit(struct file_watch *watch)
{
	if (!watch->loop)
		return;
	loop_watch_deinit(&watch->folder);
	loop_timer_deinit(&watch->settled);
	*watch = (struct file_watch){0};
}
