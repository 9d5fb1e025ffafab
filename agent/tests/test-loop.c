/* The loop calls the handlers of its sources. A handler may remove any source. */
#include "weir/loop.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "weir/base.h"

struct pipe_end {
	struct loop_io io;
	struct pipe_end *other; /* deinited by this one's handler */
	int count;
};

static void end_ready(struct loop_io *io)
{
	struct pipe_end *end = container_of(io, struct pipe_end, io);
	char byte;

	assert_true(io->events & EPOLLIN);
	assert_int_equal(read(io->fd, &byte, 1), 1);
	end->count++;
	if (end->other)
		loop_io_deinit(&end->other->io);
}

static void test_io(void **state)
{
	struct pipe_end end = {0};
	struct loop loop;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(loop_io_init(&end.io, &loop, fds[0], EPOLLIN, end_ready), 0);
	assert_int_equal(loop_step(&loop, 0), 0);
	assert_int_equal(write(fds[1], "ab", 2), 2);
	assert_int_equal(loop_step(&loop, -1), 1);
	assert_int_equal(loop_step(&loop, -1), 1);
	assert_int_equal(end.count, 2);
	loop_io_deinit(&end.io);
	loop_io_deinit(&end.io);
	loop_deinit(&loop);
	close(fds[0]);
	close(fds[1]);
}

/* Two sources are ready in one batch; the first one's handler removes the second. */
static void test_deinit_in_batch(void **state)
{
	struct pipe_end a = {0}, b = {0};
	struct loop loop;
	int fds[4];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(fds + 2), 0);
	a.other = &b;
	b.other = &a;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(loop_io_init(&a.io, &loop, fds[0], EPOLLIN, end_ready), 0);
	assert_int_equal(loop_io_init(&b.io, &loop, fds[2], EPOLLIN, end_ready), 0);
	assert_int_equal(write(fds[1], "a", 1), 1);
	assert_int_equal(write(fds[3], "b", 1), 1);
	assert_int_equal(loop_step(&loop, -1), 2);
	assert_int_equal(a.count + b.count, 1);
	loop_io_deinit(&a.io);
	loop_io_deinit(&b.io);
	loop_deinit(&loop);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

struct counter {
	struct loop_timer timer;
	int count, stop_at;
};

static void count_up(struct loop_timer *timer)
{
	struct counter *counter = container_of(timer, struct counter, timer);

	if (++counter->count == counter->stop_at)
		loop_stop(timer->io.loop);
}

static void test_timer(void **state)
{
	struct counter counter = {.stop_at = 3};
	struct loop loop;

	(void)state;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(loop_timer_init(&counter.timer, &loop, count_up), 0);
	assert_int_equal(loop_step(&loop, 0), 0);
	assert_int_equal(loop_timer_set(&counter.timer, 0, 1000000), 0);
	assert_int_equal(loop_run(&loop), 0);
	assert_int_equal(counter.count, 3);
	loop_timer_clear(&counter.timer);
	assert_int_equal(loop_step(&loop, 5), 0);
	loop_timer_deinit(&counter.timer);
	loop_timer_deinit(&counter.timer);
	loop_deinit(&loop);
}

static int raised_number;

static void raised(struct loop_signals *signals, int number)
{
	raised_number = number;
	loop_stop(signals->io.loop);
}

static void test_signals(void **state)
{
	static const int numbers[] = {SIGUSR1, SIGUSR2};
	struct loop_signals signals;
	struct loop loop;

	(void)state;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(loop_signals_init(&signals, &loop, numbers, 2, raised), 0);
	kill(getpid(), SIGUSR2);
	assert_int_equal(loop_run(&loop), 0);
	assert_int_equal(raised_number, SIGUSR2);
	loop_signals_deinit(&signals);
	loop_deinit(&loop);
}

static char changed_name[64];
static int changed_count;

static void changed(struct loop_watch *watch, const struct inotify_event *event)
{
	snprintf(changed_name, sizeof(changed_name), "%s", event->len ? event->name : "");
	changed_count++;
	loop_watch_deinit(watch);
}

/* Two events are queued; the handler of the first one removes the watch. */
static void test_watch(void **state)
{
	char folder[] = "/tmp/weir-test-XXXXXX", path[64];
	struct loop_watch watch;
	struct loop loop;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(loop_watch_init(&watch, &loop, "/nowhere", IN_CREATE, changed), -2);
	assert_string_equal(loop_watch_hint(-ENOENT), "");
	assert_non_null(strstr(loop_watch_hint(-EMFILE), "max_user_instances"));
	assert_non_null(strstr(loop_watch_hint(-ENOSPC), "max_user_watches"));
	assert_int_equal(loop_watch_init(&watch, &loop, folder, IN_CREATE | IN_DELETE, changed), 0);
	snprintf(path, sizeof(path), "%s/one", folder);
	fclose(fopen(path, "w"));
	unlink(path);
	assert_int_equal(loop_step(&loop, -1), 1);
	assert_int_equal(changed_count, 1);
	assert_string_equal(changed_name, "one");
	assert_int_equal(loop_step(&loop, 0), 0);
	loop_deinit(&loop);
	rmdir(folder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_io),    cmocka_unit_test(test_deinit_in_batch),
		cmocka_unit_test(test_timer), cmocka_unit_test(test_signals),
		cmocka_unit_test(test_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
