#include "preempt/function.h"

#include "client/stream.h"
#include "client/worker.h"
#include "measure/kernel.h"
#include "preempt/new-code.h"

#include "weir/log.h"

#define WAYS 8u
#define SETS (FUNCTIONS_MAX / WAYS)

struct function function_table[FUNCTIONS_MAX];
static _Atomic uint32_t used;          /* records in the table */
static _Atomic uint32_t kernels_ready; /* CUkernels with forms */

/* User-space addresses have 47 bits: the client's number fits above. */
static uint64_t key_of(const struct client *client, CUfunction handle)
{
	return (uint64_t)(uintptr_t)handle | (uint64_t)(client->index + 1) << 48;
}

static struct function *set_of(uint64_t key)
{
	return &function_table[(key * 0x9e3779b97f4a7c15u >> 32) % SETS * WAYS];
}

/* The code that a CUkernel or CUfunction belongs to. NULL: this driver does not tell. */
static const void *owner_of(CUfunction handle, bool *is_kernel)
{
	CUlibrary library = NULL;
	CUmodule module = NULL;

	*is_kernel =
		real(cuKernelGetLibrary)(&library, (CUkernel)handle) == CUDA_SUCCESS && library;
	if (!*is_kernel && real(cuFuncGetModule)(&module, handle) != CUDA_SUCCESS)
		return NULL;
	return *is_kernel ? (void *)library : (void *)module;
}

static struct function *lookup(uint64_t key)
{
	struct function *set = set_of(key);

	for (size_t i = 0; i < WAYS; i++) {
		if (load_acquire(&set[i].key) == key)
			return &set[i];
	}
	return NULL;
}

/* A thread that finds the key before the state is set takes the kernel for native, which is right.
 */
static bool take_record(struct function *function, uint64_t key, struct client *client,
			CUfunction handle)
{
	uint64_t none = 0;

	if (!atomic_compare_exchange_strong(&function->key, &none, key))
		return false;
	atomic_fetch_add(&used, 1);
	function->origin.handle = handle;
	function->client = client;
	function->changes = 0;
	function->asks_soonest = false;
	function->soonest_asked = false;
	function->is_ahead = false;
	function->origin.cache_config = CU_FUNC_CACHE_PREFER_NONE;
	atomic_store(&function->origin.owner, owner_of(handle, &function->origin.library));
	atomic_store(&function->state, FUNCTION_NATIVE);
	return true;
}

/* Threads that look for one kernel at the same time try the same records in the same order, so one
 * of them makes it, and the others find it. */
struct function *function_find(struct client *client, CUfunction handle)
{
	uint64_t key = key_of(client, handle);
	struct function *found = lookup(key), *set = set_of(key);

	for (size_t i = 0; !found && i < WAYS; i++) {
		uint64_t taken = load_acquire(&set[i].key);
		if (taken == key || (!taken && (take_record(&set[i], key, client, handle) ||
						load_acquire(&set[i].key) == key)))
			found = &set[i];
	}
	return found;
}

bool function_move(struct function *function, int from, enum function_state to)
{
	return atomic_compare_exchange_strong(&function->state, &from, to);
}

void function_know_original(struct function *function)
{
	if (atomic_load(&function->original))
		return;
	atomic_store(&function->original, rewrite_original(&function->origin));
	if (function->origin.library && atomic_load(&function->original))
		atomic_fetch_add(&kernels_ready, 1);
}

static void withdraw(struct function *function)
{
	atomic_store(&function->rewritten, NULL);
	atomic_store(&function->soonest, NULL);
	log_debug("a kernel runs natively again: its forms cannot have its attributes");
}

void function_follow(struct function *function)
{
	const struct rewritten *soonest = atomic_load(&function->soonest);
	const struct rewritten *rewritten = atomic_load(&function->rewritten);

	if ((soonest && !rewrite_follow(&function->origin, soonest)) ||
	    (rewritten && rewritten != soonest && !rewrite_follow(&function->origin, rewritten)))
		withdraw(function);
}

/* A CUkernel may be launched as such, and be changed as its CUfunction in this context. */
static struct function *find_original(const struct client *client, CUfunction original)
{
	if (!atomic_load(&kernels_ready))
		return NULL;
	function_for_each (f) {
		if (atomic_load(&f->state) != FUNCTION_FREE && f->client == client &&
		    atomic_load(&f->original) == original)
			return f;
	}
	return NULL;
}

void function_changed(struct client *client, CUfunction handle)
{
	struct function *function = lookup(key_of(client, handle));
	CUcontext dropped;

	if (!function)
		function = find_original(client, handle);
	if (!function)
		return;
	atomic_fetch_add(&function->changes, 1);
	bool any = atomic_load(&function->rewritten) || atomic_load(&function->soonest);
	if (!any || real(cuCtxPushCurrent_v2)(client->context) != CUDA_SUCCESS)
		return;
	function_follow(function);
	real(cuCtxPopCurrent_v2)(&dropped);
}

/* The driver does not tell this hint, so the record keeps it. */
void function_prefers(struct client *client, CUfunction handle, CUfunc_cache config)
{
	struct function *function = function_find(client, handle);

	if (function)
		atomic_store(&function->origin.cache_config, (int)config);
	function_changed(client, handle);
}

static void free_record(struct function *function)
{
	function->loaded[0] = function->loaded[1] = NULL;
	atomic_store(&function->original, NULL);
	atomic_store(&function->rewritten, NULL);
	atomic_store(&function->soonest, NULL);
	free(atomic_exchange(&function->profiles, NULL));
	atomic_store(&function->origin.owner, NULL);
	atomic_store(&function->state, FUNCTION_FREE);
	atomic_store(&function->key, 0);
}

static void forget(struct function *function, bool module)
{
	if (atomic_load(&function->original) && function->origin.library)
		atomic_fetch_sub(&kernels_ready, 1);
	for (size_t i = 0; i < countof(function->loaded); i++)
		rewrite_unload(function->loaded[i], module);
	function->request = 0;
	free_record(function);
	atomic_fetch_sub(&used, 1);
}

/* False: another thread forgets it. */
static bool is_ours_to_forget(struct function *function)
{
	return function_move(function, FUNCTION_GONE, FUNCTION_FREE);
}

/* Launches in flight use our modules and the program's variables, so this waits for them. While a
 * stream is captured nobody may wait; then our modules stay loaded. */
static void unload(struct client *client, const void *owner)
{
	bool entered = false, finished = false;
	CUcontext dropped;

	function_for_each (f) {
		if (atomic_load(&f->state) != FUNCTION_GONE || f->client != client ||
		    atomic_load(&f->origin.owner) != owner || !is_ours_to_forget(f))
			continue;
		if ((f->loaded[0] || f->loaded[1]) && !entered &&
		    atomic_load(&client->state) == CLIENT_LIVE &&
		    real(cuCtxPushCurrent_v2)(client->context) == CUDA_SUCCESS) {
			entered = true;
			finished = !atomic_load(&capture_count) &&
				   real(cuCtxSynchronize)() == CUDA_SUCCESS;
		}
		forget(f, finished);
	}
	if (entered)
		real(cuCtxPopCurrent_v2)(&dropped);
}

void function_unload(const void *owner)
{
	bool concerned[CLIENTS_MAX] = {0}, any = false;

	/* The CUDA runtime unloads its code at exit, when the driver may be gone. */
	if (!owner || worker_stopped())
		return;
	new_code_unloaded(owner);
	atomic_fetch_add(&code_unloads, 1);
	bool left = worker_grace();
	if (!atomic_load(&used))
		return;
	function_for_each (f) {
		if (atomic_load(&f->origin.owner) != owner ||
		    atomic_load(&f->state) == FUNCTION_FREE)
			continue;
		atomic_store(&f->state, FUNCTION_GONE);
		each_subsystem(code_gone, f);
		concerned[f->client->index] = any = true;
	}
	/* Records of code that is gone stay, and a kernel with such a handle runs natively. */
	if (!any || !left || !worker_grace())
		return;
	client_for_each (client) {
		if (concerned[client->index])
			unload(client, owner);
	}
}

void function_forget(struct client *client)
{
	atomic_fetch_add(&code_unloads, 1);
	if (!atomic_load(&used))
		return;
	function_for_each (f) {
		if (atomic_load(&f->key) >> 48 == client->index + 1 &&
		    atomic_load(&f->state) != FUNCTION_FREE)
			atomic_store(&f->state, FUNCTION_GONE);
	}
	if (!worker_grace())
		return;
	function_for_each (f) {
		if (atomic_load(&f->key) >> 48 == client->index + 1 && is_ours_to_forget(f))
			forget(f, false);
	}
}

void function_fork(void)
{
	rewrite_fork();
	function_for_each (f)
		free_record(f);
	atomic_store(&used, 0);
	atomic_store(&kernels_ready, 0);
}
