#include "client/client.h"

#include "client/pipes.h"
#include "client/subsystem.h"
#include "shim/thread.h"
#include "shim/weak-libc.h"

#include "weir/log.h"

#include <string.h>

#define START_AGAIN   NS_PER_S         /* ns, after threads could not be started */
#define SET_UP_WITHIN (2 * NS_PER_S)   /* ns; an agent that does not answer takes one second */
#define SET_UP_PERIOD (50 * NS_PER_US) /* ns, from one look to the next */

struct client clients[CLIENTS_MAX];
_Atomic uint32_t clients_used;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* of threads */
static pthread_mutex_t claiming = PTHREAD_MUTEX_INITIALIZER; /* of slots */

uint64_t client_now(void)
{
	return monotonic_now();
}

static struct client *find(CUcontext context, enum client_state state)
{
	client_for_each (client) {
		if (load_acquire(&client->state) == (int)state && client->context == context)
			return client;
	}
	return NULL;
}

struct client *client_find(CUcontext context)
{
	return find(context, CLIENT_LIVE);
}

struct client *client_here(void)
{
	CUcontext context = driver_context();

	return context ? client_find(context) : NULL;
}

CUcontext client_primary(CUdevice device)
{
	CUcontext primary;
	unsigned flags;
	int active = 0;

	/* Ask first: retaining an inactive primary context would create it. */
	if (real(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS || !active ||
	    real(cuDevicePrimaryCtxRetain)(&primary, device) != CUDA_SUCCESS)
		return NULL;
	real(cuDevicePrimaryCtxRelease_v2)(device);
	return primary;
}

/* With the context current. */
static bool open_client(struct client *client)
{
	if (real(cuCtxGetDevice)(&client->device) != CUDA_SUCCESS ||
	    real(cuDeviceGetUuid_v2)(&client->gpu, client->device) != CUDA_SUCCESS)
		return false;
	client->concurrent = driver_attribute(client->device, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
	each_subsystem(open, client);
	return true;
}

static bool is_unused(const struct client *client)
{
	int state = load_acquire(&client->state);

	return state == CLIENT_FREE || state == CLIENT_DEAD;
}

/* Takes a slot that is free or whose context has ended. NULL: another thread was first to take one
 * for this context, or all are in use. */
static struct client *claim(CUcontext context)
{
	locked(&claiming);
	if (find(context, CLIENT_NEW) || find(context, CLIENT_LIVE))
		return NULL;
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &clients[i];
		uint32_t used = i;
		/* First: other threads must find the slot as soon as it is taken. */
		atomic_compare_exchange_strong(&clients_used, &used, i + 1);
		if (is_unused(client)) {
			client->context = context;
			store_release(&client->state, CLIENT_NEW);
			return client;
		}
	}
	log_limited(LOG_WARNING, 3600, "more than %d contexts: the others are not governed",
		    CLIENTS_MAX);
	return NULL;
}

static void init_client(struct client *client)
{
	for (size_t i = 0; i < n_subsystems; i++) {
		const struct subsystem *row = &subsystems[i];
		if (row->state)
			memset((char *)row->state + client->index * row->state_size, 0,
			       row->state_size);
	}
	each_subsystem(init, client);
}

static void read_settings(void)
{
	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		clients[i].index = i;
	each_subsystem(settings);
}

/* Without its threads libweir could neither take demand back nor end the hold of a dead agent. */
static bool threads_run(void)
{
	static uint64_t again;
	uint64_t now = client_now();

	locked(&starting);
	bool run = now >= again;
	for (size_t i = 0; run && i < n_subsystems; i++)
		run = !subsystems[i].start || subsystems[i].start() == 0;
	if (!run && now >= again)
		again = now + START_AGAIN;
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
	struct client *client = claim(context);
	if (!client)
		return NULL;
	init_client(client);
	bool pushed = real(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
	bool done = pushed && open_client(client);
	if (pushed)
		real(cuCtxPopCurrent_v2)(&dropped);
	if (!done) {
		log_limited(LOG_WARNING, 60, "a context cannot be governed: its device is unknown");
		atomic_store(&client->state, CLIENT_DEAD);
		return NULL;
	}
	atomic_store(&client->state, CLIENT_LIVE);
	each_subsystem(ready);
	return client;
}

/* Another thread sets it up. A launch that did not wait would have neither a gate nor a form that
 * can leave. */
static struct client *await_client(CUcontext context)
{
	const struct timespec period = {.tv_nsec = SET_UP_PERIOD};
	uint64_t until = client_now() + SET_UP_WITHIN;

	while (find(context, CLIENT_NEW) && client_now() < until)
		nanosleep(&period, NULL);
	return client_find(context);
}

struct client *client_of(CUcontext context)
{
	struct client *client = client_find(context);

	if (!client && !find(context, CLIENT_NEW))
		client = client_new(context);
	return client ? client : await_client(context);
}

static bool is_left(const struct client *client)
{
	bool left = true;

	for (size_t i = 0; i < n_subsystems; i++)
		left &= !subsystems[i].leave || subsystems[i].leave(client);
	return left;
}

void client_remove(struct client *client)
{
	int live = CLIENT_LIVE;

	if (!client || !atomic_compare_exchange_strong(&client->state, &live, CLIENT_ENDING))
		return;
	if (!is_left(client)) { /* its slot stays taken */
		each_subsystem_back(stop, client);
		return;
	}
	each_subsystem_back(forget, client);
	atomic_store(&client->state, CLIENT_DEAD);
}

void client_fork(void)
{
	pthread_mutex_init(&starting, NULL);
	pthread_mutex_init(&claiming, NULL);
	pipes_fork();
	each_subsystem(fork);
	client_for_each (client) {
		if (client->state == CLIENT_FREE)
			continue;
		client->binding = NULL;
		client->state = CLIENT_DEAD;
	}
}
