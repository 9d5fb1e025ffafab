/* Clients of the services in service.h that do what servers must stand. --way reset: connections
 * that end by a reset, with a request or a part of it under way; --iterations of them, and at most
 * --connections are open at a time. --way stop: each connection sends a byte and stops; at the end
 * (--stop-file, --seconds) it sends the rest. --way crawl: connections that take little at a time,
 * and read byte by byte; at most as many as the server has slots.
 *
 * Every reply is checked; a wrong one, or none for PATIENCE_S, ends the program with 1. It prints a
 * line of JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <weir/base.h>

#include "../workload.h"
#include "service.h"
#include "sockets.h"

#define CONNECTIONS_MAX 100000
#define PATIENCE_S      20

struct rude {
	struct workload w;
	const struct service *service;
	uint32_t size;
	size_t request_bytes, reply_bytes;
	uint64_t port, count, first;
	int *fds;
	uint8_t *request, *reply; /* of one connection at a time */
};

static void open_one(struct rude *rude, uint64_t number, bool narrow)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = sockets_connect((uint16_t)rude->port, narrow);

	if (fd < 0)
		workload_fail("connection %" PRIu64 ": %s", number, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	rude->fds[number] = fd;
}

static struct conversation make_request(struct rude *rude, uint64_t number)
{
	struct conversation conversation = {(uint32_t)(rude->first + number), rude->size, 0};

	rude->service->make(&conversation, rude->request);
	return conversation;
}

static void send_part(const struct rude *rude, uint64_t number, size_t from, size_t to)
{
	for (ssize_t n; from < to; from += (size_t)n) {
		n = send(rude->fds[number], rude->request + from, to - from, MSG_NOSIGNAL);
		if (n < 0)
			workload_fail("send of connection %" PRIu64 ": %s", number,
				      strerror(errno));
	}
}

/* @most: bytes at a time. */
static void take_reply(struct rude *rude, uint64_t number, size_t most)
{
	struct conversation conversation = make_request(rude, number);

	for (size_t at = 0; at < rude->reply_bytes;) {
		size_t left = rude->reply_bytes - at;
		ssize_t n = recv(rude->fds[number], rude->reply + at, left < most ? left : most, 0);

		if (n <= 0)
			workload_fail("reply to connection %" PRIu64 ": %s", number,
				      n ? strerror(errno) : "closed");
		at += (size_t)n;
	}
	if (!rude->service->is_right(&conversation, rude->request, rude->reply))
		workload_fail("%s: wrong reply to connection %" PRIu64, rude->service->name,
			      number);
}

static void end_all(const struct rude *rude)
{
	for (uint64_t i = 0; i < rude->count; i++)
		if (rude->fds[i] >= 0)
			sockets_reset(rude->fds[i]);
}

/* A whole request, half of one, and a byte. */
static uint64_t reset(struct rude *rude)
{
	const size_t parts[] = {rude->request_bytes, rude->request_bytes / 2, 1};
	uint64_t resets = rude->w.iterations ? rude->w.iterations : 300;

	workload_ready(&rude->w);
	for (uint64_t i = 0; i < resets; i++) {
		uint64_t number = i % rude->count;

		if (rude->fds[number] >= 0)
			sockets_reset(rude->fds[number]);
		open_one(rude, number, false);
		make_request(rude, number);
		send_part(rude, number, 0, parts[i % countof(parts)]);
	}
	return resets;
}

static uint64_t stop(struct rude *rude)
{
	for (uint64_t i = 0; i < rude->count; i++) {
		open_one(rude, i, false);
		make_request(rude, i);
		send_part(rude, i, 0, 1);
	}
	workload_ready(&rude->w);
	while (!workload_stopped(&rude->w))
		sleep_until_ns(now_ns() + 10 * NS_PER_MS);
	for (uint64_t i = 0; i < rude->count; i++) {
		make_request(rude, i);
		send_part(rude, i, 1, rude->request_bytes);
	}
	for (uint64_t i = 0; i < rude->count; i++)
		take_reply(rude, i, rude->reply_bytes);
	return rude->count;
}

static uint64_t crawl(struct rude *rude)
{
	workload_ready(&rude->w);
	for (uint64_t i = 0; i < rude->count; i++) {
		open_one(rude, i, true);
		make_request(rude, i);
		send_part(rude, i, 0, rude->request_bytes);
	}
	for (uint64_t i = 0; i < rude->count; i++)
		take_reply(rude, i, 1);
	return rude->count;
}

static const struct way {
	const char *name;
	uint64_t (*run)(struct rude *rude); /* returns how many connections did so */
} ways[] = {{"reset", reset}, {"stop", stop}, {"crawl", crawl}};

static const struct way *way_find(const char *name)
{
	for (size_t i = 0; name && i < countof(ways); i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	fprintf(stderr, "--way: reset, stop or crawl\n");
	exit(2);
}

static const struct way *parse(struct rude *rude, int argc, char **argv)
{
	const char *name = NULL, *way = NULL;
	const struct workload_option own[] = {
		{"service", OPTION_TEXT, &name, "echo, matmul or kv"},
		{"way", OPTION_TEXT, &way, "reset, stop or crawl"},
		{"port", OPTION_NUMBER, &rude->port, "the server's, on loopback"},
		{"connections", OPTION_NUMBER, &rude->count, "at the same time; default 4"},
		{"first", OPTION_NUMBER, &rude->first,
		 "number of the first connection; those of other clients must be others"},
		{0}};
	struct workload *w = &rude->w;

	workload_parse(w, argc, argv, "asks a server on loopback, and does not behave", own);
	rude->service = service_find(name, w->size);
	if (rude->count < 1 || rude->count > CONNECTIONS_MAX || rude->first > 1u << 20 ||
	    rude->port < 1 || rude->port > UINT16_MAX) {
		fprintf(stderr, "--connections: 1 to %d; --port: needed\n", CONNECTIONS_MAX);
		exit(2);
	}
	rude->size =
		(uint32_t)workload_pick(w, w->size, rude->service->simulated, rude->service->gpu);
	rude->request_bytes = rude->service->request_bytes(rude->size);
	rude->reply_bytes = rude->service->reply_bytes(rude->size);
	return way_find(way);
}

int main(int argc, char **argv)
{
	static struct rude rude = {.w = {.seed = 1}, .count = 4};
	const struct way *way = parse(&rude, argc, argv);

	rude.request = workload_alloc(rude.request_bytes);
	rude.reply = workload_alloc(rude.reply_bytes);
	rude.fds = workload_alloc(rude.count * sizeof(*rude.fds));
	for (uint64_t i = 0; i < rude.count; i++)
		rude.fds[i] = -1;
	uint64_t began = now_ns(), done = way->run(&rude);
	end_all(&rude);
	printf("{\"service\":\"%s\",\"way\":\"%s\",\"connections\":%" PRIu64 ",\"done\":%" PRIu64
	       ",\"seconds\":%.3f}\n",
	       rude.service->name, way->name, rude.count, done, (double)(now_ns() - began) / 1e9);
	return 0;
}
