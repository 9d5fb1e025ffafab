#include "weir/loop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "weir/base.h"

int loop_init(struct loop *loop)
{
	memset(loop, 0, sizeof(*loop));
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll < 0 ? -errno : 0;
}

void loop_deinit(struct loop *loop)
{
	if (loop->epoll > 0)
		close(loop->epoll);
	loop->epoll = -1;
}

int loop_step(struct loop *loop, int timeout_ms)
{
	int n = epoll_wait(loop->epoll, loop->batch, LOOP_BATCH, timeout_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	loop->n = n;
	for (loop->at = 0; loop->at < loop->n; loop->at++) {
		struct epoll_event *event = &loop->batch[loop->at];
		struct loop_io *io = event->data.ptr;
		/* NULL: an earlier handler of this batch deinited the source. */
		if (!io)
			continue;
		io->events = event->events;
		io->ready(io);
	}
	loop->n = loop->at = 0;
	return n;
}

int loop_run(struct loop *loop)
{
	loop->stopped = false;
	while (!loop->stopped) {
		int r = loop_step(loop, -1);
		if (r < 0)
			return r;
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

uint64_t loop_now(void)
{
	return monotonic_now();
}

int loop_io_init(struct loop_io *io, struct loop *loop, int fd, uint32_t events, loop_io_fn *ready)
{
	struct epoll_event event = {.events = events, .data.ptr = io};

	*io = (struct loop_io){.fd = -1};
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	*io = (struct loop_io){.loop = loop, .fd = fd, .ready = ready};
	return 0;
}

int loop_io_modify(struct loop_io *io, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = io};

	return epoll_ctl(io->loop->epoll, EPOLL_CTL_MOD, io->fd, &event) < 0 ? -errno : 0;
}

void loop_io_deinit(struct loop_io *io)
{
	struct loop *loop = io->loop;

	if (!loop)
		return;
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, io->fd, NULL);
	for (int i = loop->at; i < loop->n; i++)
		if (loop->batch[i].data.ptr == io)
			loop->batch[i].data.ptr = NULL;
	*io = (struct loop_io){.fd = -1};
}

/* For sources that create their descriptor themselves. Takes @fd, even on failure. */
static int adopt(struct loop_io *io, struct loop *loop, int fd, loop_io_fn *ready)
{
	if (fd < 0) {
		*io = (struct loop_io){.fd = -1};
		return -errno;
	}
	int r = loop_io_init(io, loop, fd, EPOLLIN, ready);
	if (r < 0)
		close(fd);
	return r;
}

static void discard(struct loop_io *io)
{
	int fd = io->fd;

	if (!io->loop)
		return;
	loop_io_deinit(io);
	close(fd);
}

static void timer_ready(struct loop_io *io)
{
	struct loop_timer *timer = container_of(io, struct loop_timer, io);
	uint64_t times;

	/* EAGAIN: the timer was cleared or set again since epoll reported it. */
	if (read(io->fd, &times, sizeof(times)) == sizeof(times))
		timer->expired(timer);
}

int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_fn *expired)
{
	timer->expired = expired;
	return adopt(&timer->io, loop, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		     timer_ready);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

int loop_timer_set(struct loop_timer *timer, uint64_t delay, uint64_t interval)
{
	/* Zero would disarm the timer. */
	struct itimerspec when = {timespec_of(interval), timespec_of(delay ? delay : 1)};

	return timerfd_settime(timer->io.fd, 0, &when, NULL) < 0 ? -errno : 0;
}

void loop_timer_clear(struct loop_timer *timer)
{
	struct itimerspec never = {0};

	if (timer->io.loop)
		timerfd_settime(timer->io.fd, 0, &never, NULL);
}

void loop_timer_deinit(struct loop_timer *timer)
{
	discard(&timer->io);
}

static void signals_ready(struct loop_io *io)
{
	struct loop_signals *signals = container_of(io, struct loop_signals, io);
	struct signalfd_siginfo info;

	if (read(io->fd, &info, sizeof(info)) == sizeof(info))
		signals->raised(signals, (int)info.ssi_signo);
}

int loop_signals_init(struct loop_signals *signals, struct loop *loop, const int *numbers, size_t n,
		      loop_signals_fn *raised)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	signals->raised = raised;
	return adopt(&signals->io, loop, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		     signals_ready);
}

void loop_signals_deinit(struct loop_signals *signals)
{
	discard(&signals->io);
}

static void watch_ready(struct loop_io *io)
{
	struct loop_watch *watch = container_of(io, struct loop_watch, io);
	_Alignas(struct inotify_event) char
		buffer[4 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	struct loop *loop = io->loop;

	ssize_t size = read(io->fd, buffer, sizeof(buffer));
	/* NULL: a handler deinited the watch. */
	loop->walked = watch;
	for (ssize_t at = 0; at < size && loop->walked;) {
		const struct inotify_event *event = (const struct inotify_event *)(buffer + at);
		at += (ssize_t)(sizeof(*event) + event->len);
		watch->changed(watch, event);
	}
	loop->walked = NULL;
}

int loop_watch_init(struct loop_watch *watch, struct loop *loop, const char *path, uint32_t mask,
		    loop_watch_fn *changed)
{
	watch->changed = changed;
	int r = adopt(&watch->io, loop, inotify_init1(IN_CLOEXEC | IN_NONBLOCK), watch_ready);
	if (r < 0)
		return r;
	if (inotify_add_watch(watch->io.fd, path, mask) < 0) {
		r = -errno;
		loop_watch_deinit(watch);
	}
	return r;
}

void loop_watch_deinit(struct loop_watch *watch)
{
	if (!watch->io.loop)
		return;
	if (watch->io.loop->walked == watch)
		watch->io.loop->walked = NULL;
	discard(&watch->io);
}

/* Both limits count per user, over all containers of the node. */
const char *loop_watch_hint(int error)
{
	if (error == -EMFILE)
		return "; is fs.inotify.max_user_instances too small?";
	if (error == -ENOSPC)
		return "; is fs.inotify.max_user_watches too small?";
	return "";
}
