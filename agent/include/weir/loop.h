/* The event loop of the agent and of the device plugin: epoll, level-triggered, one thread.
 *
 * A source (descriptor, timer, signals, directory watch) is a struct embedded in the object that
 * owns it. Its handler gets the source and finds the object with container_of(). A handler may
 * deinit any source, even its own, and free the object around it; the loop then drops events of
 * this source that it has already fetched. Nothing here allocates.
 *
 * Every x_deinit accepts a source that is zeroed or already deinited. Functions that return int
 * return 0 or a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

struct loop_io;
struct loop_timer;
struct loop_signals;
struct loop_watch;

#define LOOP_BATCH 64

struct loop {
	int epoll;
	bool stopped;
	int n, at;                       /* size of this batch, index of the current event */
	const struct loop_watch *walked; /* the watch whose events are being handled */
	struct epoll_event batch[LOOP_BATCH];
};

int loop_init(struct loop *loop);
void loop_deinit(struct loop *loop);
/* Runs until loop_stop(). */
int loop_run(struct loop *loop);
/* Waits up to @timeout_ms (-1: forever) and handles the ready sources. Returns the number of events
 * handled, or a negative errno. */
int loop_step(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t loop_now(void);

/* A descriptor. `events` says what it is ready for: those of EPOLLIN and EPOLLOUT that were asked
 * for, EPOLLERR, EPOLLHUP. */
typedef void loop_io_fn(struct loop_io *io);
struct loop_io {
	struct loop *loop;
	int fd;
	uint32_t events;
	loop_io_fn *ready;
};

/* The caller keeps @fd and closes it after loop_io_deinit(). */
int loop_io_init(struct loop_io *io, struct loop *loop, int fd, uint32_t events, loop_io_fn *ready);
int loop_io_modify(struct loop_io *io, uint32_t events);
void loop_io_deinit(struct loop_io *io);

/* A timer; not armed until it is set. */
typedef void loop_timer_fn(struct loop_timer *timer);
struct loop_timer {
	struct loop_io io;
	loop_timer_fn *expired;
};

int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_fn *expired);
/* Expires @delay ns from now (0: as soon as possible), then every @interval ns (0: once). Replaces
 * an earlier setting. */
int loop_timer_set(struct loop_timer *timer, uint64_t delay, uint64_t interval);
/* Disarms the timer; an expiry that was not handled yet is dropped. */
void loop_timer_clear(struct loop_timer *timer);
void loop_timer_deinit(struct loop_timer *timer);

/* Signals. loop_signals_init() blocks them for the thread; they stay blocked. */
typedef void loop_signals_fn(struct loop_signals *signals, int number);
struct loop_signals {
	struct loop_io io;
	loop_signals_fn *raised;
};

int loop_signals_init(struct loop_signals *signals, struct loop *loop, const int *numbers, size_t n,
		      loop_signals_fn *raised);
void loop_signals_deinit(struct loop_signals *signals);

/* Changes of a directory or file, by inotify. If @event->len > 0, @event->name is the entry's name.
 * IN_IGNORED is the last event: the directory itself is gone. */
typedef void loop_watch_fn(struct loop_watch *watch, const struct inotify_event *event);
struct loop_watch {
	struct loop_io io;
	loop_watch_fn *changed;
};

int loop_watch_init(struct loop_watch *watch, struct loop *loop, const char *path, uint32_t mask,
		    loop_watch_fn *changed);
void loop_watch_deinit(struct loop_watch *watch);
/* Advice to the administrator about an error of loop_watch_init(), for the end of a message; may be
 * "". */
const char *loop_watch_hint(int error);
