#include "weir/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "common/address.h"
#include "common/metric.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"
#include "weir/loop.h"

#define CONNECTIONS_MAX  64
#define OF_ONE_ADDRESS   4 /* connections, so that a few peers cannot keep others away */
#define CONNECTION_BYTES (16 * 1024)

/* libmicrohttpd's own timeout counts only idle time: a peer that sends a byte now and then would
 * stay. So each connection has a deadline, HTTP_CONNECTION_NS after we accepted it. */
struct connection {
	struct connection *prev, *next;
	int fd;
	uint64_t deadline; /* loop_now() */
	bool late;         /* shut down, and in no list */
};

struct http {
	struct loop *loop;
	const struct http_pages *pages;
	struct MHD_Daemon *daemon;
	struct connection *connections; /* oldest first, so the first deadline is the next */
	struct loop_io io;
	struct loop_timer timer;
	uint64_t late; /* connections that were shut down at their deadline */
};

/* The daemon sees that the connection hung up, and closes it. */
static void shut_down_late(struct http *http)
{
	uint64_t now = loop_now();

	while (http->connections && http->connections->deadline <= now) {
		struct connection *connection = http->connections;
		DL_DELETE(http->connections, connection);
		connection->late = true;
		http->late++;
		shutdown(connection->fd, SHUT_RDWR);
	}
}

static void set_timer(struct http *http)
{
	MHD_UNSIGNED_LONG_LONG milliseconds;
	uint64_t now = loop_now(), delay = UINT64_MAX;

	if (http->connections)
		delay = http->connections->deadline > now ? http->connections->deadline - now : 0;
	if (MHD_get_timeout(http->daemon, &milliseconds) == MHD_YES &&
	    milliseconds * 1000000ull < delay)
		delay = milliseconds * 1000000ull;
	if (delay != UINT64_MAX)
		loop_timer_set(&http->timer, delay, 0);
	else
		loop_timer_clear(&http->timer);
}

static unsigned connections(const struct http *http)
{
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		->num_connections;
}

/* The timer is for what the epoll descriptor does not report: deadlines, and work left over.
 * A daemon at its limit does not listen, and it listens again at the start of a run only. So a run
 * that closed connections is followed by another. */
static void run(struct http *http)
{
	unsigned before;

	shut_down_late(http);
	do {
		before = connections(http);
		MHD_run(http->daemon);
	} while (connections(http) < before);
	set_timer(http);
}

static void notify(void *userdata, struct MHD_Connection *peer, void **context,
		   enum MHD_ConnectionNotificationCode code)
{
	struct http *http = userdata;
	struct connection *connection = *context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (connection && !connection->late)
			DL_DELETE(http->connections, connection);
		free(connection);
		*context = NULL;
		return;
	}
	int fd = MHD_get_connection_info(peer, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	connection = malloc(sizeof(*connection));
	if (!connection) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	*connection = (struct connection){.fd = fd, .deadline = loop_now() + HTTP_CONNECTION_NS};
	DL_APPEND(http->connections, connection);
	*context = connection;
}

static void http_ready(struct loop_io *io)
{
	run(container_of(io, struct http, io));
}

static void http_due(struct loop_timer *timer)
{
	run(container_of(timer, struct http, timer));
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
			      char *text, size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);

	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
				   const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8", (char *)text, strlen(text),
		      MHD_RESPMEM_MUST_COPY);
}

static const struct metric http_metrics[] = {
	{"weir_http_late_total", "HTTP connections that took longer than they may.",
	 METRIC_AT(struct http, late)},
	{0},
};

static enum MHD_Result answer_metrics(struct http *http, struct MHD_Connection *connection)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return MHD_NO;
	int r = http->pages->metrics(http->pages->userdata, stream);
	metric_write_table(stream, http_metrics, &(struct metric_objects){.first = http});
	if (fclose(stream) != 0 || r < 0) {
		free(text);
		return answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory\n");
	}
	return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text,
		      size, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result handle(void *userdata, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	struct http *http = userdata;
	char text[160];

	(void)version, (void)upload, (void)state;
	if (*upload_size || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0))
		return MHD_NO;
	if (strcmp(url, "/metrics") == 0)
		return answer_metrics(http, connection);
	if (strcmp(url, "/healthz") == 0)
		return answer_text(connection, MHD_HTTP_OK, "ok\n");
	if (strcmp(url, "/readyz") == 0) {
		bool ready;
		snprintf(text, sizeof(text), "%s\n",
			 http->pages->condition(http->pages->userdata, &ready));
		return answer_text(connection, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
				   text);
	}
	return answer_text(connection, MHD_HTTP_NOT_FOUND, "try /metrics, /healthz or /readyz\n");
}

static int listen_at(const char *text)
{
	struct sockaddr_storage address;
	socklen_t size;
	int one = 1;

	if (!address_parse(text, &address, &size))
		return -EINVAL;
	cleanup(closep) int fd =
		socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, CONNECTIONS_MAX) < 0)
		return -errno;
	return take_fd(fd);
}

static int start(struct http *http, int fd)
{
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)OF_ONE_ADDRESS,
		MHD_OPTION_NOTIFY_CONNECTION, notify, http, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (!http->daemon) {
		close(fd);
		return error_origin(-ENOMEM);
	}
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	int r = loop_timer_init(&http->timer, http->loop, http_due);
	if (r == 0)
		r = loop_io_init(&http->io, http->loop, info->epoll_fd, EPOLLIN, http_ready);
	return r;
}

int http_new(struct http **out, struct loop *loop, const char *address,
	     const struct http_pages *pages)
{
	*out = NULL;
	if (!*address)
		return 0;
	int fd = listen_at(address);
	if (fd < 0) {
		log_error("metrics.address %s: %s", address, strerror(-fd));
		return fd;
	}
	struct http *http = calloc(1, sizeof(*http));
	if (!http) {
		close(fd);
		return error_origin(-ENOMEM);
	}
	*http = (struct http){.loop = loop, .pages = pages};
	int r = start(http, fd);
	if (r < 0) {
		http_free(http);
		return r;
	}
	log_info("metrics at http://%s/metrics", address);
	*out = http;
	return 0;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	loop_timer_deinit(&http->timer);
	loop_io_deinit(&http->io);
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	free(http);
}

uint16_t http_port(const struct http *http)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);

	return info ? info->port : 0;
}
