/* Serves one of the services in service.h on loopback, until --stop-file or --seconds. With the
 * CPU's input and output, the answers come from the CPU (--way cpu) or from a kernel for each batch
 * of requests (--way driven). With --way loop an event loop on the GPU does all of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "front.h"
#include "host.h"
#include "serve-loop.h"

extern const char services_ptx[];

#define SLOTS       4
#define SLOTS_MAX   31   /* one callback is for the listener */
#define MAPPED_MOST 4096 /* bytes of a request that the GPU reads from the host's memory */

struct server {
	struct front front;
	struct loop_server loop;
	size_t request_bytes, reply_bytes;
	void *state; /* of the CPU's answers */
	/* The driven way. */
	CUfunction kernel;
	CUstream stream;
	CUdeviceptr slots, requests, replies, table;
	uint32_t *mapped_slots;
	bool copies;     /* requests and replies have memory of their own on the device */
	unsigned blocks; /* of a request */
};

static void answer_on_cpu(void *context, const uint32_t *slots, uint32_t n)
{
	const struct server *server = context;

	for (uint32_t i = 0; i < n; i++)
		server->front.service->answer(
			server->state, server->front.size,
			server->front.requests + slots[i] * server->request_bytes,
			server->front.replies + slots[i] * server->reply_bytes);
}

static void copy_requests(const struct server *server, const uint32_t *slots, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t at = slots[i] * server->request_bytes;

		CU(cuMemcpyHtoDAsync(server->requests + at, server->front.requests + at,
				     server->request_bytes, server->stream));
	}
}

static void copy_replies(const struct server *server, const uint32_t *slots, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t at = slots[i] * server->reply_bytes;

		CU(cuMemcpyDtoHAsync(server->front.replies + at, server->replies + at,
				     server->reply_bytes, server->stream));
	}
}

static void answer_by_kernel(void *context, const uint32_t *slots, uint32_t n)
{
	struct server *server = context;
	uint32_t size = server->front.size;
	void *parameters[] = {&server->slots, &size, &server->requests, &server->replies,
			      &server->table};

	memcpy(server->mapped_slots, slots, n * sizeof(*slots));
	if (server->copies)
		copy_requests(server, slots, n);
	CU(cuLaunchKernel(server->kernel, n, server->blocks, 1, server->front.service->threads, 1,
			  1, 0, server->stream, parameters, NULL));
	if (server->copies)
		copy_replies(server, slots, n);
	CU(cuStreamSynchronize(server->stream));
}

static void open_driven(struct server *server, struct workload *w)
{
	const struct service *service = server->front.service;
	size_t requests = FRONT_CONNECTIONS_MAX * server->request_bytes,
	       replies = FRONT_CONNECTIONS_MAX * server->reply_bytes;
	uint32_t tiles = (server->front.size + MATMUL_TILE - 1) / MATMUL_TILE;
	bool is_matmul = strcmp(service->name, "matmul") == 0;
	char name[32];

	workload_open(w, services_ptx);
	snprintf(name, sizeof(name), "%s_batch", service->name);
	server->kernel = workload_kernel(w, name);
	CU(cuStreamCreate(&server->stream, CU_STREAM_NON_BLOCKING));
	server->blocks = is_matmul ? tiles * tiles : 1;
	server->mapped_slots =
		host_mapped(FRONT_CONNECTIONS_MAX * sizeof(uint32_t), &server->slots);
	server->front.requests = host_mapped(requests, &server->requests);
	server->front.replies = host_mapped(replies, &server->replies);
	server->copies = server->request_bytes > MAPPED_MOST;
	if (server->copies) {
		CU(cuMemAlloc(&server->requests, requests));
		CU(cuMemAlloc(&server->replies, replies));
	}
	if (service->state_bytes)
		server->table = host_zeros(service->state_bytes);
	server->front.answer = answer_by_kernel;
}

static void open_cpu(struct server *server)
{
	server->front.requests = workload_alloc(FRONT_CONNECTIONS_MAX * server->request_bytes);
	server->front.replies = workload_alloc(FRONT_CONNECTIONS_MAX * server->reply_bytes);
	server->state = calloc(1, server->front.service->state_bytes + 1);
	if (!server->state)
		workload_fail("out of memory");
	server->front.answer = answer_on_cpu;
}

static uint64_t serve_cpu(struct server *server, struct workload *w)
{
	open_cpu(server);
	return front_serve(&server->front, w);
}

static uint64_t serve_driven(struct server *server, struct workload *w)
{
	open_driven(server, w);
	return front_serve(&server->front, w);
}

static uint64_t serve_loop(struct server *server, struct workload *w)
{
	return loop_serve(&server->loop, w);
}

static const struct way {
	const char *name;
	uint64_t (*serve)(struct server *server, struct workload *w);
} ways[] = {{"cpu", serve_cpu}, {"driven", serve_driven}, {"loop", serve_loop}};

static const struct way *way_find(const char *name)
{
	for (size_t i = 0; i < countof(ways); i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	fprintf(stderr, "--way: cpu, driven or loop\n");
	exit(2);
}

static const struct way *parse(struct server *server, struct workload *w, int argc, char **argv)
{
	const char *name = NULL, *way = "cpu";
	uint64_t port = 0, blocks = 0, slots = SLOTS, files = 0;
	const struct workload_option own[] = {
		{"service", OPTION_TEXT, &name, "echo, matmul or kv"},
		{"way", OPTION_TEXT, &way, "cpu (default), driven or loop"},
		{"port", OPTION_NUMBER, &port, "on loopback"},
		{"blocks", OPTION_NUMBER, &blocks, "of the loop; default: as many as fit"},
		{"slots", OPTION_NUMBER, &slots, "requests of a block of the loop at a time"},
		{"leaves", OPTION_FLAG, &server->loop.leaves.wanted,
		 "says how soon the loop leaves"},
		{"files", OPTION_NUMBER, &files, "connections of the loop; default: the library's"},
		{0}};
	const struct service *service;
	uint32_t size;

	workload_parse(w, argc, argv, "answers requests on loopback", own);
	service = service_find(name, w->size);
	if (port < 1 || port > UINT16_MAX || blocks > UINT16_MAX || slots < 1 ||
	    slots > SLOTS_MAX || files > UINT32_MAX) {
		fprintf(stderr, "--port: needed; --blocks, --slots, --files: out of range\n");
		exit(2);
	}
	size = (uint32_t)workload_pick(w, w->size, service->simulated, service->gpu);
	server->front = (struct front){
		.service = service, .size = size, .port = (uint16_t)port, .context = server};
	server->loop.service = service;
	server->loop.size = size;
	server->loop.port = (uint16_t)port;
	server->loop.blocks = (uint32_t)blocks;
	server->loop.slots = (uint32_t)slots;
	server->loop.files = (uint32_t)files;
	server->request_bytes = service->request_bytes(size);
	server->reply_bytes = service->reply_bytes(size);
	return way_find(way);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	static struct server server;
	const struct way *way = parse(&server, &w, argc, argv);
	uint64_t answered = way->serve(&server, &w);

	printf("{\"service\":\"%s\",\"way\":\"%s\",\"answered\":%" PRIu64 ",",
	       server.front.service->name, way->name, answered);
	leaves_print(&server.loop.leaves);
	puts("}");
	return 0;
}
