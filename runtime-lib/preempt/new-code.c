#include "preempt/new-code.h"

#include "shim/thread.h"

#include <string.h>

static struct {
	pthread_mutex_t lock; /* never held over a driver call */
	struct new_code codes[NEW_CODES_MAX];
	_Atomic uint32_t n;
} noted = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void remove_at(uint32_t i)
{
	uint32_t n = atomic_fetch_sub(&noted.n, 1) - 1;

	memmove(&noted.codes[i], &noted.codes[i + 1], (n - i) * sizeof(noted.codes[0]));
}

void new_code_loaded(const void *handle, bool library)
{
	struct new_code code = {handle, library, library ? NULL : driver_context(), client_now()};

	locked(&noted.lock);
	if (atomic_load(&noted.n) == NEW_CODES_MAX)
		remove_at(0);
	noted.codes[atomic_fetch_add(&noted.n, 1)] = code;
}

static void remove_all(const void *handle, CUcontext context)
{
	if (!atomic_load(&noted.n))
		return;
	locked(&noted.lock);
	for (uint32_t i = atomic_load(&noted.n); i--;) {
		if (handle ? noted.codes[i].handle == handle : noted.codes[i].context == context)
			remove_at(i);
	}
}

void new_code_unloaded(const void *handle)
{
	remove_all(handle, NULL);
}

void new_code_context_gone(CUcontext context)
{
	remove_all(NULL, context);
}

static bool is_for(const struct new_code *code, const struct client *client, uint64_t until)
{
	return code->at <= until && (code->library || code->context == client->context);
}

/* Its place; or beyond the last. With the lock. */
static uint32_t find(const struct client *client, uint64_t until)
{
	uint32_t i = 0, n = atomic_load(&noted.n);

	while (i < n && !is_for(&noted.codes[i], client, until))
		i++;
	return i;
}

bool new_code_waits(const struct client *client, uint64_t until)
{
	if (!atomic_load(&noted.n))
		return false;
	locked(&noted.lock);
	return find(client, until) < atomic_load(&noted.n);
}

bool new_code_take(const struct client *client, uint64_t until, struct new_code *out)
{
	locked(&noted.lock);
	uint32_t i = find(client, until);
	if (i == atomic_load(&noted.n))
		return false;
	*out = noted.codes[i];
	remove_at(i);
	return true;
}

/* Another thread may have held the lock. */
void new_code_fork(void)
{
	pthread_mutex_init(&noted.lock, NULL);
	atomic_store(&noted.n, 0);
}
