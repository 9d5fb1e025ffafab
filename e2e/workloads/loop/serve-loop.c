#include "serve-loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include <weir/base.h>

#include "host.h"
#include "server-loop.h"

extern const char server_loop_ptx[];

#define LOOK_NS (2 * NS_PER_MS)

struct serving {
	struct workload *workload;
	struct weir_loop *loop;
	bool is_over; /* the loop has ended by itself */
};

/* Says when it listens, and stops it when it is time. */
static void *watch(void *context)
{
	struct serving *serving = context;
	bool listens = false;

	while (!__atomic_load_n(&serving->is_over, __ATOMIC_ACQUIRE)) {
		if (!listens && weir_loop_port(serving->loop, 0)) {
			listens = true;
			workload_ready(serving->workload);
		}
		if (listens && workload_stopped(serving->workload)) {
			weir_loop_stop(serving->loop);
			return NULL;
		}
		sleep_until_ns(now_ns() + LOOK_NS);
	}
	return NULL;
}

static void run(struct loop_server *server, struct serving *serving, CUdeviceptr parameters)
{
	void *arguments[] = {NULL, &parameters};
	pthread_t watcher;
	int code = 0, error;

	if (pthread_create(&watcher, NULL, watch, serving))
		workload_fail("no thread");
	leaves_begin(&server->leaves, serving->loop);
	error = weir_loop_run(serving->loop, arguments, &code);
	leaves_end(&server->leaves);
	__atomic_store_n(&serving->is_over, true, __ATOMIC_RELEASE);
	pthread_join(watcher, NULL);
	if (error != -ECANCELED)
		workload_fail("%s: %s (code %d)", server->service->name,
			      weir_loop_error(serving->loop), code);
}

uint64_t loop_serve(struct loop_server *server, struct workload *workload)
{
	const struct service *service = server->service;
	struct serving serving = {.workload = workload};
	struct weir_loop_options options = {.blocks = server->blocks,
					    .threads = service->threads,
					    .callbacks = server->slots + 1,
					    .files = server->files,
					    .name = service->name};
	struct server_loop parameters = {
		.listener = -1,
		.size = server->size,
		.request_bytes = (uint32_t)service->request_bytes(server->size),
		.reply_bytes = (uint32_t)service->reply_bytes(server->size),
		.slots = server->slots};
	struct weir_loop_stats stats;
	CUdeviceptr device;
	char name[32];

	workload_open(workload, server_loop_ptx);
	device = host_zeros(sizeof(parameters));
	snprintf(name, sizeof(name), "%s_loop", service->name);
	snprintf(parameters.address, sizeof(parameters.address), "127.0.0.1:%u", server->port);
	serving.loop = host_loop(workload_kernel(workload, name), &options);
	weir_loop_stats(serving.loop, &stats);
	parameters.requests =
		host_zeros((size_t)stats.blocks * server->slots * parameters.request_bytes);
	parameters.replies =
		host_zeros((size_t)stats.blocks * server->slots * parameters.reply_bytes);
	if (service->state_bytes)
		parameters.table = host_zeros(service->state_bytes);
	workload_upload(device, &parameters, sizeof(parameters));
	run(server, &serving, device);
	CU(cuMemcpyDtoH(&parameters, device, sizeof(parameters)));
	weir_loop_free(serving.loop);
	return parameters.answered;
}
