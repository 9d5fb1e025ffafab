/* One request at a time:
 *
 *        +-----------------------------------+
 *        v        another page               | the watch was refused, broke, or
 *      LIST ---+                             | said 410 Gone: after a back-off
 *        ^-----+                             |
 *        +----------> WATCH -----------------+
 *                     ^---+  the server ended it normally: continue at the same version
 *
 * A list gives its pods a new generation. After its last page, pods of older generations are
 * removed. Nothing is removed earlier.
 *
 * libcurl's callbacks only parse bytes into the table. The listener is called by a timer that
 * expires at once: outside of libcurl, and once for a burst of changes. */
#include "kubernetes/pods.h"

#include "config/config.h"
#include "kubernetes/body.h"
#include "kubernetes/credentials.h"
#include "kubernetes/pod-claims.h"
#include "kubernetes/pod-table.h"
#include "kubernetes/transfer.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RETRY_FIRST_NS   200000000ull
#define RETRY_MAX_NS     30000000000ull
#define LIST_SECONDS     60
#define HTTP_GONE        410
#define ERROR_BODY_SHOWN 160
#define BRIEF_NS         1000000000ull

struct pods {
	const struct config_kubernetes *config;
	struct kubeconfig server;
	struct transfers transfers;
	struct loop_timer retry, notify;
	struct pod_claims claims;
	pods_changed_fn *changed;
	void *userdata;

	struct pod_table table;
	char version[64]; /* where the next watch starts */
	char *next;       /* next page of the list; NULL: the first */
	bool listed;      /* the table is complete: watch from @version */
	bool connected;
	bool hurried; /* the current pause was cut short */
	unsigned failures;

	CURL *request; /* NULL: waiting for @retry */
	struct curl_slist *headers;
	struct body body; /* received, and not parsed yet */
	bool watching;    /* the request is a watch, not a list */
	bool gone;        /* the server said that @version is too old */
	uint64_t started;
	char trouble[256]; /* what is wrong with the answer */
	char curl_trouble[CURL_ERROR_SIZE];
};

static void tell(struct pods *p)
{
	loop_timer_set(&p->notify, 0, 0);
}

static void set_connected(struct pods *p, bool connected)
{
	if (p->connected == connected)
		return;
	p->connected = connected;
	log_info(connected ? "watching the pods of node %s at %s"
			   : "lost the watch on the pods of node %s at %s",
		 p->config->node, p->server.server);
	tell(p);
}

static void table_changed(struct pod_table *table)
{
	tell(container_of(table, struct pods, table));
}

/* Takes @pod. */
static int put(struct pods *p, struct pod *pod)
{
	pod_claims_apply(pod, &p->claims.claims);
	return pod_table_put(&p->table, pod);
}

static void claims_changed(struct pod_claims *claims)
{
	struct pods *p = container_of(claims, struct pods, claims);

	pod_table_apply(&p->table, &claims->claims);
}

/* What the server says */

static int apply_event(struct pods *p, struct podlist_event *event)
{
	int r = 0;

	switch (event->type) {
	case PODLIST_EVENT_CHANGED:
		r = put(p, take(event->pod));
		break;
	case PODLIST_EVENT_DELETED:
		pod_table_remove(&p->table, event->pod->uid);
		break;
	case PODLIST_EVENT_ERROR:
		p->gone = event->code == HTTP_GONE;
		snprintf(p->trouble, sizeof(p->trouble), "%d %s", event->code, event->message);
		return -ECONNRESET;
	default:
		break;
	}
	if (r == 0 && event->resource_version[0])
		memcpy(p->version, event->resource_version, sizeof(p->version));
	return r;
}

/* False: the transfer must end; @trouble says why. */
static bool read_line(struct pods *p, const char *line, size_t n)
{
	struct podlist_event event;

	if (n == 0)
		return true;
	int r = podlist_parse_event(&event, line, n, &p->config->names);
	if (r < 0) {
		snprintf(p->trouble, sizeof(p->trouble), "an event of the watch is malformed");
		return false;
	}
	r = apply_event(p, &event);
	podlist_event_deinit(&event);
	return r == 0;
}

/* Reads whole lines and keeps the rest. */
static bool read_lines(struct pods *p, const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t piece = end ? (size_t)(end - text) : n;

		if (!body_add(&p->body, text, piece, PODS_LINE_MAX)) {
			snprintf(p->trouble, sizeof(p->trouble),
				 "an event of the watch is larger than %u bytes", PODS_LINE_MAX);
			return false;
		}
		if (!end)
			return true;
		if (!read_line(p, p->body.text, p->body.n))
			return false;
		body_clear(&p->body);
		text += piece + 1;
		n -= piece + 1;
	}
	return true;
}

static long http_status(struct pods *p)
{
	long status = 0;

	curl_easy_getinfo(p->request, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t on_data(char *data, size_t size, size_t n, void *userdata)
{
	struct pods *p = userdata;
	bool good;

	n *= size;
	if (p->watching && http_status(p) == 200) {
		good = read_lines(p, data, n);
	} else {
		good = body_add(&p->body, data, n, PODS_PAGE_MAX);
		if (!good)
			snprintf(p->trouble, sizeof(p->trouble),
				 "the answer is larger than %u bytes", PODS_PAGE_MAX);
	}
	/* Any other return value ends the transfer. */
	return good ? n : 0;
}

/* The end of a watch's headers: the watch is open, even before the first event. */
static size_t on_header(char *data, size_t size, size_t n, void *userdata)
{
	struct pods *p = userdata;

	n *= size;
	if (p->watching && n == 2 && memcmp(data, "\r\n", 2) == 0 && http_status(p) == 200) {
		p->failures = 0;
		set_connected(p, true);
	}
	return n;
}

static int read_page(struct pods *p)
{
	struct podlist list;

	int r = podlist_parse(&list, p->body.text ? p->body.text : "", p->body.n, &p->config->names,
			      POD_TABLE_MAX);
	if (r < 0) {
		snprintf(p->trouble, sizeof(p->trouble), "the list of pods is malformed: %s",
			 strerror(-r));
		return r;
	}
	if (list.skipped)
		log_limited(LOG_WARNING, 60, "the API server listed %zu malformed pods",
			    list.skipped);
	for (size_t i = 0; i < list.n && r == 0; i++)
		r = put(p, take(list.pods[i]));
	free(p->next);
	p->next = take(list.next);
	memcpy(p->version, list.resource_version, sizeof(p->version));
	podlist_deinit(&list);
	if (r == 0 && !p->next) {
		pod_table_remove_older(&p->table);
		p->listed = true;
		tell(p);
	}
	return r;
}

/* The request */

/* NULL: no memory. */
static char *make_url(struct pods *p)
{
	char *node = curl_easy_escape(p->request, p->config->node, 0);
	char *from = curl_easy_escape(p->request,
				      p->watching ? p->version
				      : p->next   ? p->next
						  : "",
				      0);
	char *url = NULL;
	int r = -1;

	if (node && from && p->watching)
		r = asprintf(&url,
			     "%s/api/v1/pods?fieldSelector=spec.nodeName%%3D%s&watch=1"
			     "&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s",
			     p->server.server, node, PODS_WATCH_SECONDS, from);
	else if (node && from)
		r = asprintf(&url, "%s/api/v1/pods?fieldSelector=spec.nodeName%%3D%s&limit=%d%s%s",
			     p->server.server, node, PODS_PAGE_ENTRIES, p->next ? "&continue=" : "",
			     from);
	curl_free(node);
	curl_free(from);
	return r < 0 ? NULL : url;
}

static int prepare(struct pods *p)
{
	cleanup(freep) char *url = make_url(p);

	if (!url)
		return error_origin(-ENOMEM);
	curl_easy_setopt(p->request, CURLOPT_URL, url);
	/* The server ends a watch itself. Our timeout only ends a watch that hangs. */
	curl_easy_setopt(p->request, CURLOPT_TIMEOUT,
			 p->watching ? PODS_WATCH_SECONDS + 60L : (long)LIST_SECONDS);
	curl_easy_setopt(p->request, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(p->request, CURLOPT_TCP_KEEPIDLE, 20L);
	curl_easy_setopt(p->request, CURLOPT_TCP_KEEPINTVL, 10L);
	curl_easy_setopt(p->request, CURLOPT_ERRORBUFFER, p->curl_trouble);
	curl_easy_setopt(p->request, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(p->request, CURLOPT_WRITEDATA, p);
	curl_easy_setopt(p->request, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(p->request, CURLOPT_HEADERDATA, p);
	credentials_apply(p->request, &p->headers, &p->server);
	return transfers_add(&p->transfers, p->request);
}

static void end_request(struct pods *p)
{
	curl_easy_cleanup(take(p->request));
	curl_slist_free_all(take(p->headers));
	body_clear(&p->body);
}

/* Half of the delay plus a random part of the other half, so that the agents of many nodes do not
 * retry at the same time. */
static void back_off(struct pods *p)
{
	uint64_t delay = smaller(RETRY_FIRST_NS << smaller(p->failures, 8), RETRY_MAX_NS);

	/* A pause that was cut short says nothing about the server: do not grow the delay. */
	if (!p->hurried)
		p->failures++;
	p->hurried = false;
	loop_timer_set(&p->retry,
		       delay / 2 + arc4random_uniform((uint32_t)(delay / 2000)) * 1000ull, 0);
}

static void start(struct pods *p)
{
	p->watching = p->listed;
	p->gone = false;
	p->trouble[0] = p->curl_trouble[0] = '\0';
	p->started = loop_now();
	if (!p->listed && !p->next)
		p->table.generation++;
	p->request = curl_easy_init();
	if (!p->request || prepare(p) < 0) {
		end_request(p);
		back_off(p);
	}
}

/* Logs the failure that the server or libcurl reported. */
static void fail(struct pods *p, long status, CURLcode result)
{
	set_connected(p, false);
	if (!p->trouble[0] && status != 0 && status != 200)
		snprintf(p->trouble, sizeof(p->trouble), "HTTP status %ld: %.*s", status,
			 (int)(p->body.n < ERROR_BODY_SHOWN ? p->body.n : ERROR_BODY_SHOWN),
			 p->body.text ? p->body.text : "");
	log_limited(p->gone ? LOG_DEBUG : LOG_WARNING, 10, "%s the pods at %s: %s",
		    p->watching ? "watching" : "listing", p->server.server,
		    p->trouble[0]        ? p->trouble
		    : p->curl_trouble[0] ? p->curl_trouble
					 : curl_easy_strerror(result));
	p->listed = false;
	free(take(p->next));
}

static void on_done(struct transfers *transfers, CURL *request, CURLcode result)
{
	struct pods *p = container_of(transfers, struct pods, transfers);
	long status = http_status(p);
	bool good = result == CURLE_OK && status == 200;

	(void)request;
	if (good && !p->watching)
		good = read_page(p) == 0;
	if (!good)
		fail(p, status, result);
	/* Also pause if the server ends each watch immediately. */
	bool brief = p->watching && loop_now() < p->started + BRIEF_NS;
	end_request(p);
	if (good && !brief)
		start(p);
	else
		back_off(p);
}

static void on_retry(struct loop_timer *timer)
{
	start(container_of(timer, struct pods, retry));
}

static void on_notify(struct loop_timer *timer)
{
	struct pods *p = container_of(timer, struct pods, notify);

	p->changed(p->userdata);
}

int pods_new(struct pods **out, struct loop *loop, const struct config_kubernetes *config,
	     pods_changed_fn *changed, void *userdata)
{
	struct pods *p = calloc(1, sizeof(*p));

	if (!p)
		return error_origin(-ENOMEM);
	p->config = config;
	p->changed = changed;
	p->userdata = userdata;
	p->table.changed = table_changed;
	int r = credentials_load(&p->server, config->kubeconfig);
	if (r == 0)
		r = loop_timer_init(&p->retry, loop, on_retry);
	if (r == 0)
		r = loop_timer_init(&p->notify, loop, on_notify);
	if (r == 0)
		r = pod_claims_init(&p->claims, loop, config->claims, claims_changed);
	if (r == 0)
		r = transfers_init(&p->transfers, loop, on_done);
	if (r < 0) {
		pods_free(p);
		return r;
	}
	start(p);
	*out = p;
	return 0;
}

void pods_free(struct pods *p)
{
	if (!p)
		return;
	if (p->request) {
		transfers_remove(&p->transfers, p->request);
		end_request(p);
	}
	transfers_deinit(&p->transfers);
	pod_claims_deinit(&p->claims);
	pod_table_deinit(&p->table);
	loop_timer_deinit(&p->retry);
	loop_timer_deinit(&p->notify);
	kubeconfig_deinit(&p->server);
	free(p->next);
	body_deinit(&p->body);
	free(p);
}

const struct pod *pods_find(struct pods *p, const char *uid)
{
	return pod_table_find(&p->table, uid);
}

const struct pod *pods_search(const struct pods *p, bool (*is)(const struct pod *pod))
{
	return pod_table_search(&p->table, is);
}

void pods_each(const struct pods *p, void (*each)(void *userdata, const struct pod *pod),
	       void *userdata)
{
	pod_table_each(&p->table, each, userdata);
}

void pods_hurry(struct pods *p)
{
	uint64_t now = loop_now(), due = p->started + RETRY_FIRST_NS;

	if (p->request)
		return;
	p->hurried = true;
	loop_timer_set(&p->retry, due > now ? due - now : 0, 0);
}

bool pods_connected(const struct pods *p)
{
	return p->connected;
}
