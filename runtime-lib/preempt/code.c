#include "preempt/code.h"

#include "preempt/new-code.h"
#include "shim/thread.h"

#include "weir/log.h"

#include <string.h>

#define BUCKETS    1024u
#define LINKED_MAX 64u

/* A module or a library with PTX. */
struct code {
	struct code *next;
	const void *handle;
	const void *library; /* the CUlibrary of which this CUmodule is a part */
	CUcontext context;   /* NULL for a library */
	struct image *image; /* NULL: its PTX cannot be used, for `reason` */
	const char *reason;
};

/* Machine code of the driver's linker, known by its contents because programs copy it. */
struct linked {
	size_t size; /* 0: free */
	uint64_t hash;
	struct image *image;
	const char *reason;
};

static struct {
	pthread_mutex_t lock; /* never held over a driver call */
	struct code *buckets[BUCKETS];
	struct linked linked[LINKED_MAX]; /* a ring */
	size_t n_linked;
	_Atomic int any_linked;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char several[] = "it was linked of several inputs with PTX that is not plain text";

static struct code **bucket_of(const void *handle)
{
	return &state.buckets[(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 32 & (BUCKETS - 1)];
}

static struct code **find(const void *handle)
{
	struct code **at = bucket_of(handle);

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

static void code_free(struct code *code)
{
	if (code)
		image_unref(code->image);
	free(code);
}

static struct code *unlink_code(struct code **at)
{
	struct code *code = *at;

	*at = code->next;
	return code;
}

/* Takes over @code. */
static void put(struct code *code)
{
	struct code *former = NULL;

	pthread_mutex_lock(&state.lock);
	struct code **at = find(code->handle);
	if (*at) /* we missed its end, or it has a new record */
		former = unlink_code(at);
	at = bucket_of(code->handle);
	code->next = *at;
	*at = code;
	pthread_mutex_unlock(&state.lock);
	code_free(former);
}

/* Takes over @code.image. */
static void insert(const struct code *code)
{
	struct code *copy = malloc(sizeof(*copy));

	if (copy)
		put(memcpy(copy, code, sizeof(*copy)));
	else
		image_unref(code->image);
}

/* FNV-1a. */
static uint64_t hash_of(const uint8_t *data, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 0x100000001b3u;
	return hash;
}

/* Is it what the driver's linker made of PTX? */
static bool find_linked(const void *data, struct code *code)
{
	size_t size = atomic_load(&state.any_linked) ? image_elf_size(data, 0) : 0;
	uint64_t hash = 0;

	if (!size)
		return false;
	locked(&state.lock);
	for (size_t i = 0; i < LINKED_MAX; i++) {
		const struct linked *linked = &state.linked[i];
		if (linked->size != size)
			continue;
		hash = hash ? hash : hash_of(data, size);
		if (linked->hash != hash)
			continue;
		code->image = image_ref(linked->image);
		code->reason = linked->reason;
		return true;
	}
	return false;
}

void code_linked(const void *data, size_t size, struct image *image)
{
	struct linked linked = {.size = image_elf_size(data, size)};

	if (!linked.size)
		return;
	linked.hash = hash_of(data, linked.size);
	linked.image = image_ref(image);
	linked.reason = image ? NULL : several;
	pthread_mutex_lock(&state.lock);
	struct linked *slot = &state.linked[state.n_linked++ % LINKED_MAX];
	struct image *former = slot->image;
	*slot = linked;
	atomic_store(&state.any_linked, 1);
	pthread_mutex_unlock(&state.lock);
	image_unref(former);
}

void code_loaded(const void *handle, bool library, const void *data, size_t size)
{
	struct code code = {.handle = handle, .context = library ? NULL : driver_context()};

	code.image = image_keep(data, size);
	bool any = code.image;
	if (any || (!size && find_linked(data, &code)))
		insert(&code);
	if (!any)
		return;
	log_debug("a %s with PTX is loaded, %s a context", library ? "library" : "module",
		  driver_context() ? "with" : "without");
	new_code_loaded(handle, library);
}

/* Takes out the code of this handle with its parts, or all code of the context. */
static struct code *take_out(const void *handle, CUcontext context)
{
	struct code *gone = NULL;

	locked(&state.lock);
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct code **at = &state.buckets[i]; *at;) {
			const struct code *code = *at;
			if (handle ? code->handle != handle && code->library != handle
				   : code->context != context) {
				at = &(*at)->next;
				continue;
			}
			struct code *taken = unlink_code(at);
			taken->next = gone;
			gone = taken;
		}
	}
	return gone;
}

void code_forget(struct code *gone)
{
	while (gone) {
		struct code *next = gone->next;
		code_free(gone);
		gone = next;
	}
}

void code_unload(const void *handle, void (*unload)(const void *handle))
{
	struct code *gone = take_out(handle, NULL);

	unload(handle);
	for (const struct code *code = gone; code; code = code->next) {
		if (code->handle != handle)
			unload(code->handle);
	}
	code_forget(gone);
}

struct code *code_take(CUcontext context)
{
	if (!context)
		return NULL;
	new_code_context_gone(context);
	return take_out(NULL, context);
}

void code_put_back(struct code *taken)
{
	while (taken) {
		struct code *next = taken->next;
		put(taken);
		taken = next;
	}
}

void code_fork(void)
{
	/* Another thread may have held the lock. The records leak: there is no CUDA in this
	 * process. */
	memset(&state, 0, sizeof(state));
	pthread_mutex_init(&state.lock, NULL);
}

void code_part_of(CUlibrary library, CUmodule module)
{
	struct code code = {.handle = module, .library = library, .context = driver_context()};

	pthread_mutex_lock(&state.lock);
	const struct code *whole = *find(library);
	bool known = *find(module);
	if (whole && !known) {
		code.image = image_ref(whole->image);
		code.reason = whole->reason;
	}
	pthread_mutex_unlock(&state.lock);
	if (!known)
		insert(&code);
}

struct image *code_image(const void *handle, const char **reason)
{
	*reason = "no PTX came with it";
	locked(&state.lock);
	const struct code *code = *find(handle);
	if (!code)
		return NULL;
	*reason = code->reason;
	return image_ref(code->image);
}
