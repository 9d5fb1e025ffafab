/* libcurl names the sockets and the timer that it waits for; we report to it what is ready. */
#include "kubernetes/transfer.h"

#include "weir/base.h"
#include "weir/error.h"

#include <errno.h>

/* Lives from libcurl's first call for a socket to its CURL_POLL_REMOVE. */
struct transfer_socket {
	struct loop_io io;
	struct transfers *transfers;
};

static void finish_all(struct transfers *t)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(t->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		CURL *request = message->easy_handle;
		CURLcode result = message->data.result;
		curl_multi_remove_handle(t->multi, request);
		t->done(t, request, result);
	}
}

static void act(struct transfers *t, curl_socket_t fd, int what)
{
	int running;

	curl_multi_socket_action(t->multi, fd, what, &running);
	finish_all(t);
}

static void socket_ready(struct loop_io *io)
{
	struct transfer_socket *s = container_of(io, struct transfer_socket, io);
	int what = 0;

	if (io->events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (io->events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (io->events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_ERR;
	act(s->transfers, io->fd, what);
}

static void timer_expired(struct loop_timer *timer)
{
	act(container_of(timer, struct transfers, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int on_socket(CURL *request, curl_socket_t fd, int what, void *userdata, void *assigned)
{
	static const uint32_t events[] = {
		[CURL_POLL_NONE] = 0,
		[CURL_POLL_IN] = EPOLLIN,
		[CURL_POLL_OUT] = EPOLLOUT,
		[CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT,
	};
	struct transfers *t = userdata;
	struct transfer_socket *s = assigned;

	(void)request;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			loop_io_deinit(&s->io);
		free(s);
		return 0;
	}
	if (s)
		return loop_io_modify(&s->io, events[what]) < 0 ? -1 : 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -1;
	s->transfers = t;
	if (loop_io_init(&s->io, t->loop, fd, events[what], socket_ready) < 0) {
		free(s);
		return -1;
	}
	curl_multi_assign(t->multi, fd, s);
	return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *userdata)
{
	struct transfers *t = userdata;

	(void)multi;
	if (timeout_ms < 0) {
		loop_timer_clear(&t->timer);
		return 0;
	}
	return loop_timer_set(&t->timer, (uint64_t)timeout_ms * 1000000, 0) < 0 ? -1 : 0;
}

int transfers_init(struct transfers *t, struct loop *loop, transfer_done_fn *done)
{
	*t = (struct transfers){.loop = loop, .done = done};
	int r = loop_timer_init(&t->timer, loop, timer_expired);
	if (r < 0)
		return r;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		loop_timer_deinit(&t->timer);
		return error_origin(-ENOMEM);
	}
	t->multi = curl_multi_init();
	if (!t->multi) {
		transfers_deinit(t);
		return error_origin(-ENOMEM);
	}
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
	return 0;
}

void transfers_deinit(struct transfers *t)
{
	if (!t->loop)
		return;
	if (t->multi)
		curl_multi_cleanup(t->multi);
	curl_global_cleanup();
	loop_timer_deinit(&t->timer);
	*t = (struct transfers){0};
}

int transfers_add(struct transfers *t, CURL *request)
{
	return curl_multi_add_handle(t->multi, request) == CURLM_OK ? 0 : error_origin(-EIO);
}

void transfers_remove(struct transfers *t, CURL *request)
{
	curl_multi_remove_handle(t->multi, request);
}
