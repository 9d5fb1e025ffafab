/* The event loop of the agent and of the device plugin: epoll, level-triggered, one thread.
 *
 * A source (descriptor, timer, signals, directory watch) is a struct embedded in the object it
 * belongs to; its handler gets the source and finds the object with container_of(). A handler may
 * deinit any source, its own included, and free the object around it: an event that is already
 * fetched for a source that is gone is dropped. Nothing here allocates, and a loop without ready
 * sources sleeps.
 *
 * Every x_init takes a zeroed or uninitialised source; every x_deinit accepts one that is zeroed or
 * already deinited. Functions that return int return 0 or a negative errno.
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
	int n, at;                       /* events of this batch, and the one in hand */
	const struct loop_watch *walked; /* whose events are being walked */
	struct epoll_event batch[LOOP_BATCH];
};

int loop_init(struct loop *loop);
void loop_deinit(struct loop *loop);
/* Until loop_stop(). */
int loop_run(struct loop *loop);
/* Waits up to @timeout_ms (-1: forever, 0: not at all) and handles what is ready. The number of
 * events handled, or a negative errno. */
int loop_step(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t loop_now(void);

/* A descriptor. @events: EPOLLIN, EPOLLOUT; EPOLLERR and EPOLLHUP are always told. */
typedef void loop_io_fn(struct loop_io *io, uint32_t events);
struct loop_io {
	struct loop *loop;
	int fd;
	loop_io_fn *ready;
};

/* @fd stays the caller's: deinit does not close it, and must come before the caller does. */
int loop_io_init(struct loop_io *io, struct loop *loop, int fd, uint32_t events, loop_io_fn *ready);
int loop_io_modify(struct loop_io *io, uint32_t events);
void loop_io_deinit(struct loop_io *io);

/* A timer. It rests until it is set. */
typedef void loop_timer_fn(struct loop_timer *timer);
struct loop_timer {
	struct loop_io io;
	loop_timer_fn *expired;
};

int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_fn *expired);
/* Expires @delay ns from now (0: as soon as possible) and then each @interval ns (0: only once).
 * Replaces what was set before. */
int loop_timer_set(struct loop_timer *timer, uint64_t delay, uint64_t interval);
/* Lets it rest; an expiry that was not handled yet is forgotten. */
void loop_timer_clear(struct loop_timer *timer);
void loop_timer_deinit(struct loop_timer *timer);

/* Signals. They are blocked for the thread, and stay blocked. */
typedef void loop_signals_fn(struct loop_signals *signals, int number);
struct loop_signals {
	struct loop_io io;
	loop_signals_fn *raised;
};

int loop_signals_init(struct loop_signals *signals, struct loop *loop, const int *numbers, size_t n,
		      loop_signals_fn *raised);
void loop_signals_deinit(struct loop_signals *signals);

/* Changes of a directory or file by inotify. @event->name is the entry's name when @event->len > 0.
 * After IN_IGNORED (the directory itself is gone) nothing more comes. */
typedef void loop_watch_fn(struct loop_watch *watch, const struct inotify_event *event);
struct loop_watch {
	struct loop_io io;
	loop_watch_fn *changed;
};

int loop_watch_init(struct loop_watch *watch, struct loop *loop, const char *path, uint32_t mask,
		    loop_watch_fn *changed);
void loop_watch_deinit(struct loop_watch *watch);
/* What the node's administrator can do about @error of loop_watch_init(), for the end of a message;
 * "": nobody knows. */
const char *loop_watch_hint(int error);
