#include "function.h"

#include "worker.h"

#include "weir/log.h"

#define WAYS 8u
#define SETS (FUNCTIONS_MAX / WAYS)

static struct function table[FUNCTIONS_MAX];
static _Atomic uint32_t wanted[CLIENTS_MAX]; /* a record of this client was wanted since */

/* User-space addresses have 47 bits, so the client's number fits above. */
static uint64_t key_of(const struct client *client, CUfunction handle)
{
	return (uint64_t)(uintptr_t)handle | (uint64_t)(client->index + 1) << 48;
}

static struct function *set_of(uint64_t key)
{
	return &table[(key * 0x9e3779b97f4a7c15u >> 32) % SETS * WAYS];
}

/* What a handle belongs to: it may be a context-less kernel or a function. Not in every driver. */
static const void *owner_of(CUfunction handle)
{
	CUlibrary library = NULL;
	CUmodule module = NULL;

	if (real(cuKernelGetLibrary)(&library, (CUkernel)handle) == CUDA_SUCCESS && library)
		return library;
	if (real(cuFuncGetModule)(&module, handle) == CUDA_SUCCESS)
		return module;
	return NULL;
}

/* Whoever finds the key before the state is set takes the kernel for native, as it is. */
static struct function *take_record(struct function *function, uint64_t key, struct client *client,
				    CUfunction handle)
{
	uint64_t none = 0;

	if (!atomic_compare_exchange_strong(&function->key, &none, key))
		return NULL;
	function->handle = handle;
	function->client = client;
	function->owner = owner_of(handle);
	atomic_store(&function->state, FUNCTION_NATIVE);
	return function;
}

struct function *function_find(struct client *client, CUfunction handle)
{
	uint64_t key = key_of(client, handle);
	struct function *set = set_of(key);

	for (size_t i = 0; i < WAYS; i++) {
		if (atomic_load_explicit(&set[i].key, memory_order_acquire) == key)
			return &set[i];
	}
	for (size_t i = 0; i < WAYS; i++) {
		if (atomic_load_explicit(&set[i].key, memory_order_relaxed))
			continue;
		struct function *function = take_record(&set[i], key, client, handle);
		if (function)
			return function;
	}
	return NULL;
}

void function_want(struct function *function)
{
	int native = FUNCTION_NATIVE;

	if (atomic_load_explicit(&function->state, memory_order_relaxed) != FUNCTION_NATIVE)
		return;
	if (atomic_compare_exchange_strong(&function->state, &native, FUNCTION_WANTED))
		atomic_store(&wanted[function->client->index], 1);
}

bool function_pending(const struct client *client)
{
	return atomic_load(&wanted[client->index]) != 0;
}

static void refuse(struct function *function, const char *reason)
{
	const char *name = NULL;

	if (log_enabled(LOG_DEBUG) && (real(cuFuncGetName)(&name, function->handle) || !name))
		name = "?";
	log_debug("kernel %s runs as it is: %s", name, reason);
	atomic_store(&function->state, FUNCTION_REFUSED);
}

void function_work(struct client *client)
{
	atomic_store(&wanted[client->index], 0);
	for (struct function *f = table; f < table + FUNCTIONS_MAX; f++) {
		if (atomic_load(&f->state) == FUNCTION_WANTED && f->client == client)
			refuse(f, f->owner ? "nothing is rewritten yet"
					   : "the driver does not say what it belongs to");
	}
}

static void forget(struct function *function)
{
	atomic_store(&function->state, FUNCTION_FREE);
	atomic_store(&function->rewritten, NULL);
	atomic_store(&function->key, 0);
}

void function_forget(struct client *client)
{
	for (struct function *f = table; f < table + FUNCTIONS_MAX; f++) {
		if (atomic_load(&f->key) >> 48 == client->index + 1)
			forget(f);
	}
	worker_grace();
}
