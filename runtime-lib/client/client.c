#include "client/client.h"

#include "client/demand.h"
#include "preempt/function.h"
#include "launch/gate.h"
#include "shim/weak-libc.h"
#include "client/link.h"
#include "preempt/preempt.h"
#include "launch/priority.h"
#include "client/stream.h"
#include "client/worker.h"

#include "weir/base.h"
#include "weir/log.h"

#include <pthread.h>
#include <string.h>

#define START_AGAIN 1000000000u /* ns, after threads could not be started */

struct client clients[CLIENTS_MAX];
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* of threads */

uint64_t client_now(void)
{
	return monotonic_now();
}

struct client *client_find(CUcontext context)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (atomic_load_explicit(&clients[i].state, memory_order_acquire) == CLIENT_LIVE &&
		    clients[i].context == context)
			return &clients[i];
	}
	return NULL;
}

/* Someone else is setting this context up just now. */
static bool is_new(CUcontext context)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (atomic_load(&clients[i].state) == CLIENT_NEW && clients[i].context == context)
			return true;
	}
	return false;
}

static bool page_register(struct page *page)
{
	unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
			 (page->writable ? 0 : CU_MEMHOSTREGISTER_READ_ONLY);
	CUdeviceptr gpu;

	if (atomic_load(&page->gpu))
		return true;
	CUresult result = real(cuMemHostRegister_v2)(page->memory, WEIR_PAGE_SIZE, flags);
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		result = real(cuMemHostGetDevicePointer_v2)(&gpu, page->memory, 0);
	if (result != CUDA_SUCCESS) {
		log_limited(LOG_WARNING, 60,
			    "the driver does not take a shared page (error %d): no gates yet",
			    result);
		return false;
	}
	atomic_store(&page->gpu, gpu);
	return true;
}

bool client_register_pages(struct client *client, const struct level_binding *binding)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool done;

	(void)client;
	/* A capture that goes on in this or another thread must not be disturbed. */
	real(cuThreadExchangeStreamCaptureMode)(&mode);
	done = (!binding->wait || page_register(binding->wait)) && page_register(binding->control);
	real(cuThreadExchangeStreamCaptureMode)(&mode);
	return done;
}

CUcontext client_primary(CUdevice device)
{
	CUcontext primary;
	unsigned flags;
	int active = 0;

	/* Asked first, because retaining an inactive one would make it. */
	if (real(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS || !active ||
	    real(cuDevicePrimaryCtxRetain)(&primary, device) != CUDA_SUCCESS)
		return NULL;
	real(cuDevicePrimaryCtxRelease_v2)(device);
	return primary;
}

/* An older driver does not know the attribute. */
static bool below_mps(CUdevice device)
{
	int enabled = 0;

	return real(cuDeviceGetAttribute)(&enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) ==
		       CUDA_SUCCESS &&
	       enabled;
}

/* The parts of a client that need its context: its GPU, events, pages. */
static bool client_init(struct client *client)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (real(cuCtxGetDevice)(&client->device) != CUDA_SUCCESS ||
	    real(cuDeviceGetUuid_v2)(&client->gpu, client->device) != CUDA_SUCCESS)
		return false;
	client->concurrent = below_mps(client->device);
	priority_init(client);
	real(cuThreadExchangeStreamCaptureMode)(&mode);
	sampler_init(&client->sampler);
	real(cuThreadExchangeStreamCaptureMode)(&mode);

	struct level_binding *binding = link_open(client);
	if (binding && client_register_pages(client, binding))
		atomic_store(&client->binding, binding);
	else
		atomic_store(&client->pending, binding); /* the worker tries again */
	return true;
}

/* Takes a slot that is free or whose context has gone. What was mapped for it is used again. */
static bool claim(struct client *client, CUcontext context)
{
	int state = atomic_load(&client->state);

	if ((state != CLIENT_FREE && state != CLIENT_DEAD) ||
	    !atomic_compare_exchange_strong(&client->state, &state, CLIENT_NEW))
		return false;
	client->context = context;
	link_reset(client);
	client->demanding = 0;
	client->idle_since = client->gap = client->demand_since = 0;
	client->early = (struct early){0};
	client->burst = (struct burst){0};
	client->gate_interval = GATE_INTERVAL_CONTENDED;
	client->waiting = client->yields = client->unordered = 0;
	client->max_blocking_time = 0;
	client->came_first = 0;
	client->gates = client->gates_closed = 0;
	client->starts = client->start_since = 0;
	client->gone_launches = client->gone_predicted = 0;
	client->graph_levels = 0;
	for (size_t i = 0; i < WEIR_STATUS_FORMS; i++)
		client->form_launches[i] = 0;
	for (size_t i = 0; i < client->n_pages; i++)
		atomic_store(&client->pages[i].gpu, 0);
	memset(&client->worker, 0, sizeof(client->worker));
	return true;
}

static void read_settings(void)
{
	tuning_init();
	early_init();
}

/* Without both threads nobody would take its demand back, nor end a hold whose agent has gone. */
static bool threads_run(void)
{
	static uint64_t again;
	uint64_t now = client_now();

	pthread_mutex_lock(&starting);
	bool run = now >= again && link_start() == 0 && worker_start() == 0;
	if (!run && now >= again)
		again = now + START_AGAIN;
	pthread_mutex_unlock(&starting);
	return run;
}

static struct client *client_new(CUcontext context)
{
	static struct once settings;
	CUcontext dropped;

	once(&settings, read_settings);
	if (!threads_run()) {
		log_limited(LOG_WARNING, 60, "a context cannot be governed without threads");
		return NULL;
	}
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &clients[i];
		if (!claim(client, context))
			continue;
		if (client->index != i) /* once: the worker may look at it at any time */
			client->index = (uint32_t)i;
		bool pushed = real(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
		bool done = pushed && client_init(client);
		if (pushed)
			real(cuCtxPopCurrent_v2)(&dropped);
		if (!done) {
			log_limited(LOG_WARNING, 60,
				    "a context cannot be governed: its device is unknown");
			atomic_store(&client->state, CLIENT_DEAD);
			return NULL;
		}
		atomic_store(&client->state, CLIENT_LIVE);
		link_wake();
		return client;
	}
	log_limited(LOG_WARNING, 3600, "more than %d contexts: the others are not governed",
		    CLIENTS_MAX);
	return NULL;
}

struct client *client_of(CUcontext context)
{
	struct client *client = client_find(context);

	if (client || is_new(context))
		return client;
	return client_new(context);
}

void client_remove(struct client *client)
{
	if (!client)
		return;
	atomic_store(&client->state, CLIENT_DEAD);
	worker_grace();
	stream_forget(client);
	preempt_forget(client);
	tuning_forget(client);
	function_forget(client);
	demand_drop(client);
	/* The binding, its mappings and the samples stay: a thread that is in the middle of a
	 * launch may still read them, and gates that the GPU waits on lie in these pages. */
	atomic_store(&client->binding, NULL);
	link_close(client);
}

void client_forget_all(void)
{
	pthread_mutex_init(&starting, NULL);
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		int bell = atomic_exchange(&clients[i].bell, 0);
		if (bell)
			close(bell);
		if (clients[i].state == CLIENT_FREE)
			continue;
		if (clients[i].socket >= 0)
			close(clients[i].socket);
		clients[i].socket = -1;
		request_reset(&clients[i]);
		clients[i].binding = NULL;
		clients[i].newest = NULL;
		clients[i].state = CLIENT_DEAD;
	}
}
