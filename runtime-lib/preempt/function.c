#include "preempt/function.h"

#include "client/link.h"
#include "client/request.h"
#include "client/stream.h"
#include "client/worker.h"
#include "measure/kernel.h"
#include "preempt/code.h"
#include "preempt/load-moment.h"
#include "preempt/new-code.h"

#include "weir/log.h"

#include <errno.h>
#include <string.h>

#define WAYS 8u
#define SETS (FUNCTIONS_MAX / WAYS)

static struct function table[FUNCTIONS_MAX];
static _Atomic uint32_t used;                /* records in the table */
static _Atomic uint32_t kernels_ready;       /* CUkernels with forms */
static _Atomic int awaited[CLIENTS_MAX];     /* threads that wait for forms */
static _Atomic uint32_t wanted[CLIENTS_MAX]; /* forms of a kernel of this client are wanted */

/* Requests at a time for kernels that nobody has launched: the others find room, and a helper. */
#define AHEAD_MAX 1u

#define function_for_each(f) for (struct function * (f) = table; (f) < table + FUNCTIONS_MAX; (f)++)

/* User-space addresses have 47 bits: the client's number fits above. */
static uint64_t key_of(const struct client *client, CUfunction handle)
{
	return (uint64_t)(uintptr_t)handle | (uint64_t)(client->index + 1) << 48;
}

static struct function *set_of(uint64_t key)
{
	return &table[(key * 0x9e3779b97f4a7c15u >> 32) % SETS * WAYS];
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

/* False: it is in another state. */
static bool move(struct function *function, int from, enum function_state to)
{
	return atomic_compare_exchange_strong(&function->state, &from, to);
}

void function_want(struct function *function)
{
	bool first = load_relaxed(&function->state) == FUNCTION_NATIVE &&
		     move(function, FUNCTION_NATIVE, FUNCTION_WANTED);

	if (first || function->is_ahead)
		atomic_store(&wanted[function->client->index], 1);
	function->is_ahead = false;
}

bool function_want_ahead(struct function *function)
{
	if (!move(function, FUNCTION_NATIVE, FUNCTION_WANTED))
		return false;
	function->is_ahead = true;
	atomic_store(&wanted[function->client->index], 1);
	return true;
}

void function_await(const struct client *client, bool begins)
{
	atomic_fetch_add(&awaited[client->index], begins ? 1 : -1);
}

bool function_is_awaited(const struct client *client)
{
	return atomic_load(&awaited[client->index]) != 0;
}

/* An answer that need not be loaded, or can be loaded now. */
static struct request *ready_answer(struct client *client)
{
	struct request *answer = request_answered(client);

	return answer && (answer->status != WEIR_COMPILE_OK ||
			  load_moment(client, function_is_awaited(client)))
		       ? answer
		       : NULL;
}

static bool pending(struct client *client)
{
	return ready_answer(client) ||
	       (atomic_load(&wanted[client->index]) && request_room(client));
}

/* The driver keeps it as long as the code is loaded. */
static const char *name_of(const struct function *function)
{
	const char *name = NULL;
	CUresult result = function->origin.library
				  ? real(cuKernelGetName)(&name, (CUkernel)function->origin.handle)
				  : real(cuFuncGetName)(&name, function->origin.handle);

	return result == CUDA_SUCCESS ? name : NULL;
}

static void refuse(struct function *function, int from, const char *name, const char *reason)
{
	log_debug("kernel %s runs natively: %s", name ? name : "?", reason);
	move(function, from, FUNCTION_REFUSED);
}

/* 0: not known. */
static unsigned registers_of(const struct function *function)
{
	CUfunction original = rewrite_original(&function->origin);
	int registers = 0;

	if (!original || real(cuFuncGetAttribute)(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
						  original) != CUDA_SUCCESS)
		return 0;
	return registers > 0 ? (unsigned)registers : 0;
}

static void ask(struct client *client, struct function *function)
{
	const void *owner = atomic_load(&function->origin.owner);
	const char *name = owner ? name_of(function) : NULL;
	const char *reason = "the driver does not tell where it comes from";
	struct image *image = name ? code_image(owner, &reason) : NULL;
	unsigned sm = driver_capability(client->device);
	struct image *fit = image ? image_for(image, sm) : NULL;
	bool soonest =
		(function->is_ahead || function_is_awaited(client)) && !function->soonest_asked;
	int file = fit ? rewrite_request(fit, name, sm, registers_of(function),
					 soonest ? WEIR_COMPILE_SOONEST : 0)
		       : -ENOENT;

	if (image && file < 0)
		reason = fit ? strerror(-file)
			     : "its PTX is of another architecture than its machine code";
	image_unref(fit);
	image_unref(image);
	if (file < 0) {
		refuse(function, FUNCTION_WANTED, name, reason);
		return;
	}
	function->asks_soonest = soonest;
	function->soonest_asked |= soonest;
	function->request = request_put(client, file);
	move(function, FUNCTION_WANTED, FUNCTION_REQUESTED);
	link_wake();
}

static struct function *requester(const struct client *client, uint32_t id)
{
	function_for_each (f) {
		if (atomic_load(&f->state) == FUNCTION_REQUESTED && f->client == client &&
		    f->request == id)
			return f;
	}
	return NULL; /* its code was unloaded */
}

static void withdraw(struct function *function)
{
	atomic_store(&function->rewritten, NULL);
	atomic_store(&function->soonest, NULL);
	log_debug("a kernel runs natively again: its forms cannot have its attributes");
}

/* The kernel's attributes. */
static void follow(struct function *function)
{
	const struct rewritten *soonest = atomic_load(&function->soonest);
	const struct rewritten *rewritten = atomic_load(&function->rewritten);

	if ((soonest && !rewrite_follow(&function->origin, soonest)) ||
	    (rewritten && rewritten != soonest && !rewrite_follow(&function->origin, rewritten)))
		withdraw(function);
}

static void know_original(struct function *function)
{
	if (atomic_load(&function->original))
		return;
	atomic_store(&function->original, rewrite_original(&function->origin));
	if (function->origin.library && atomic_load(&function->original))
		atomic_fetch_add(&kernels_ready, 1);
}

/* All forms are asked for when the kernel is launched. */
static enum function_state behind_soonest(const struct function *function)
{
	return function->is_ahead ? FUNCTION_NATIVE : FUNCTION_WANTED;
}

/* Either we see here that the program changed attributes meanwhile, or the changing thread sees
 * that the kernel is ready. */
static void publish(struct function *function, const struct rewritten *rewritten, bool soonest)
{
	uint32_t changes;

	know_original(function);
	atomic_store(soonest ? &function->soonest : &function->rewritten, rewritten);
	move(function, FUNCTION_REQUESTED, soonest ? behind_soonest(function) : FUNCTION_READY);
	do {
		changes = atomic_load(&function->changes);
		follow(function);
	} while (changes != atomic_load(&function->changes));
}

/* The answer to a request for the soonest form; NULL: there is none. Then for all of them. */
static void answered_soonest(struct function *function, const struct rewritten *rewritten)
{
	if (rewritten)
		publish(function, rewritten, true);
	else
		move(function, FUNCTION_REQUESTED, behind_soonest(function));
	atomic_store(&wanted[function->client->index], 1);
}

static void answered(struct client *client, struct request *answer)
{
	struct function *function = requester(client, answer->id);
	const char *name = function ? name_of(function) : NULL;
	const struct rewritten *rewritten = NULL, *soonest;
	bool compiled = answer->status == WEIR_COMPILE_OK;
	char text[REWRITE_TEXT];

	if (!name)
		return;
	if (compiled)
		rewritten = rewrite_load(&function->origin, name, driver_capability(client->device),
					 answer->file, text);
	if (rewritten && !atomic_load(&function->profiles))
		atomic_store(&function->profiles, take(answer->profiles));
	bool partial = function->asks_soonest && (!rewritten || rewritten->is_partial);
	soonest = atomic_load(&function->soonest);
	if (rewritten)
		function->loaded[partial] = rewritten;
	if (partial)
		answered_soonest(function, rewritten);
	else if (rewritten || soonest)
		publish(function, rewritten ? rewritten : soonest, false);
	else
		refuse(function, FUNCTION_REQUESTED, name, compiled ? text : answer->text);
	if (rewritten)
		log_debug("kernel %s can run in forms: %s", name, text);
}

static unsigned requests_ahead(const struct client *client)
{
	unsigned n = 0;

	function_for_each (f)
		n += atomic_load(&f->state) == FUNCTION_REQUESTED && f->client == client &&
		     f->is_ahead;
	return n;
}

/* Asks for kernels that are launched, or for the others. True: some are left, without room. */
static bool ask_all(struct client *client, bool ahead)
{
	function_for_each (f) {
		if (atomic_load(&f->state) != FUNCTION_WANTED || f->client != client ||
		    f->is_ahead != ahead)
			continue;
		if (!request_room(client) || (ahead && requests_ahead(client) >= AHEAD_MAX))
			return true;
		ask(client, f);
	}
	return false;
}

static void work(struct client *client)
{
	/* One at a time: loading takes a while. */
	struct request *answer = ready_answer(client);

	if (answer) {
		load_moment_over(client);
		answered(client, answer);
		request_done(answer);
		atomic_store(&wanted[client->index], 1);
	}
	if (!request_room(client) || !atomic_exchange(&wanted[client->index], 0))
		return;
	if (ask_all(client, false))
		atomic_store(&wanted[client->index], 1);
	else if (!function_is_awaited(client))
		ask_all(client, true); /* the rest behind the next answer */
}

void function_look(struct client *client, struct tick *tick)
{
	tick->forms |= pending(client);
}

void function_drive(struct client *client, struct tick *tick)
{
	(void)tick;
	if (request_answered(client))
		load_moment_watch(client);
	if (pending(client))
		work(client);
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
	follow(function);
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
	return move(function, FUNCTION_GONE, FUNCTION_FREE);
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
	load_moment_over(client); /* the worker is through with the client */
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
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		atomic_store(&awaited[i], 0);
}
