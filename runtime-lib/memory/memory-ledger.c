#include "memory/memory-ledger.h"

#include "memory/memory-account.h"
#include "shim/thread.h"

#include "weir/log.h"

#include <sched.h>
#include <string.h>

#define DEVICES_MAX 64
#define POOLS_MAX   64
#define RETRY_NS    NS_PER_S

struct ledger {
	_Atomic int asked; /* the account is known and not stale */
	pthread_mutex_t asking;
	_Atomic uint64_t retry_at;
	_Atomic int closed;

	pthread_mutex_t lock; /* of the fields below; never held over a driver call */
	struct memory_pages pages;
	_Atomic int counted;
	uint64_t large; /* bytes in whole chunks */
	uint64_t small; /* bytes that share chunks */
	uint64_t pooled;
	uint64_t contexts; /* each may have all variables of the libraries */
	/* Of graphs that allocate: bytes of those that can be launched, bytes of others that the
	 * device may still hold, and what it holds. */
	uint64_t instantiated, left, reserved;
	uint64_t published;
	CUmemoryPool pools[POOLS_MAX];
	size_t n_pools;
	uint64_t tickets, settled;
	_Atomic int readers; /* threads that use handles of pools */
	_Atomic bool graphs; /* some may allocate: their memory counts as a pool */
};

static struct ledger ledgers[DEVICES_MAX] = {
	[0 ... DEVICES_MAX - 1] = {.asking = PTHREAD_MUTEX_INITIALIZER,
				   .lock = PTHREAD_MUTEX_INITIALIZER},
};
static _Atomic uint64_t variables; /* bytes, of all libraries */
_Atomic int ledger_pools;

static uint64_t sum(const struct ledger *ledger)
{
	uint64_t graphs = ledger->instantiated + ledger->left;

	return ledger->large + account_chunks(ledger->small) + account_chunks(ledger->pooled) +
	       account_chunks(ledger->contexts * atomic_load(&variables)) +
	       account_chunks(graphs > ledger->reserved ? graphs : ledger->reserved);
}

static void publish(struct ledger *ledger)
{
	ledger->published = sum(ledger);
	if (ledger->pages.account)
		account_set(ledger->pages.account, ledger->pages.slot, ledger->published);
}

static void attach(struct ledger *ledger, const struct memory_pages *pages)
{
	struct memory_pages old;

	pthread_mutex_lock(&ledger->lock);
	old = ledger->pages;
	/* Another slot than before: the old one becomes empty. */
	if (old.account && (old.id != pages->id || old.slot != pages->slot))
		account_set(old.account, old.slot, 0);
	ledger->pages = *pages;
	publish(ledger);
	atomic_store(&ledger->counted, 1);
	pthread_mutex_unlock(&ledger->lock);
	memory_unmap(&old);
}

/* Nothing may be allocated. An agent that dies at the first question and at every later one is too
 * old for accounts, so nothing is counted. */
static bool is_closed(const struct ledger *ledger, enum memory_answer answer, bool first)
{
	if (atomic_load(&ledger->counted)) /* the last limit holds without an agent */
		return false;
	if (answer == MEMORY_SILENT)
		return !first && atomic_load(&ledger->closed);
	return answer == MEMORY_CLOSED;
}

static void ask(struct ledger *ledger, const CUuuid *gpu)
{
	bool first = !atomic_load(&ledger->retry_at);
	struct memory_pages pages;
	enum memory_answer answer = memory_ask(&pages, (const uint8_t *)gpu->bytes, first);

	if (answer == MEMORY_ACCOUNT)
		attach(ledger, &pages);
	bool closed = is_closed(ledger, answer, first);
	if (closed)
		log_limited(LOG_ERROR, 60,
			    "no agent tells this container's memory limit: nothing is allocated");
	atomic_store(&ledger->closed, closed);
	atomic_store(&ledger->retry_at, monotonic_now() + RETRY_NS);
	atomic_store(&ledger->asked, answer == MEMORY_ACCOUNT);
}

struct ledger *ledger_of(CUdevice device)
{
	CUuuid gpu;

	if (device < 0 || device >= DEVICES_MAX)
		return NULL;
	struct ledger *ledger = &ledgers[device];
	if (atomic_load(&ledger->asked) || monotonic_now() < atomic_load(&ledger->retry_at))
		return ledger;
	if (real(cuDeviceGetUuid_v2)(&gpu, device) != CUDA_SUCCESS)
		return NULL;
	locked(&ledger->asking);
	if (!atomic_load(&ledger->asked) && monotonic_now() >= atomic_load(&ledger->retry_at))
		ask(ledger, &gpu);
	return ledger;
}

struct ledger *ledger_here(void)
{
	CUdevice device;

	return driver_ready() && real(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? ledger_of(device)
									       : NULL;
}

static void count(struct ledger *ledger, uint64_t bytes, bool more)
{
	uint64_t *kind = bytes < WEIR_MEMORY_CHUNK / 2 ? &ledger->small : &ledger->large;
	uint64_t n = kind == &ledger->large ? account_chunks(bytes) : bytes;

	*kind += more ? n : -n;
}

/* Brings the account in line with the sums. False: it does not fit. */
static bool reserve(struct ledger *ledger)
{
	uint64_t wanted = sum(ledger);

	if (ledger->pages.account && wanted > ledger->published) {
		enum account_answer answer =
			account_reserve(ledger->pages.account, ledger->pages.limit,
					ledger->pages.slot, wanted - ledger->published);
		if (answer == ACCOUNT_BUSY)
			log_limited(LOG_ERROR, 60,
				    "the memory account has been locked for seconds");
		if (answer != ACCOUNT_RESERVED)
			return false;
		ledger->published = wanted;
	} else {
		publish(ledger);
	}
	return true;
}

/* More than any GPU has: sums could wrap. */
static bool absurd(uint64_t bytes)
{
	return bytes >= 1ull << 56;
}

static bool try_take(struct ledger *ledger, uint64_t bytes)
{
	if (absurd(bytes))
		return !atomic_load(&ledger->counted);
	locked(&ledger->lock);
	count(ledger, bytes, true);
	if (reserve(ledger))
		return true;
	count(ledger, bytes, false);
	return false;
}

static void change(struct ledger *ledger, uint64_t bytes, bool more)
{
	locked(&ledger->lock);
	count(ledger, absurd(bytes) ? 0 : bytes, more);
	publish(ledger);
}

void ledger_force(struct ledger *ledger, uint64_t bytes)
{
	change(ledger, bytes, true);
}

void ledger_drop(struct ledger *ledger, uint64_t bytes)
{
	change(ledger, bytes, false);
}

/* The handles stay valid until pools_release(). */
static size_t pools_hold(struct ledger *ledger, CUmemoryPool *out)
{
	locked(&ledger->lock);
	memcpy(out, ledger->pools, ledger->n_pools * sizeof(*out));
	atomic_fetch_add(&ledger->readers, 1);
	return ledger->n_pools;
}

static void pools_release(struct ledger *ledger)
{
	atomic_fetch_sub(&ledger->readers, 1);
}

static uint64_t read_pools(struct ledger *ledger, uint64_t *graphs)
{
	CUmemoryPool pools[POOLS_MAX];
	size_t n = pools_hold(ledger, pools);
	cuuint64_t bytes = 0, all = 0;

	*graphs = 0;
	beside_captures();
	for (size_t i = 0; i < n; i++)
		if (real(cuMemPoolGetAttribute)(pools[i], CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
						&bytes) == CUDA_SUCCESS)
			all += bytes;
	if (ledger->graphs &&
	    real(cuDeviceGetGraphMemAttribute)((CUdevice)(ledger - ledgers),
					       CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
					       &bytes) == CUDA_SUCCESS)
		*graphs = bytes;
	pools_release(ledger);
	return all;
}

static void trim_pools(struct ledger *ledger)
{
	CUmemoryPool pools[POOLS_MAX];
	size_t n = pools_hold(ledger, pools);

	for (size_t i = 0; i < n; i++)
		real(cuMemPoolTrimTo)(pools[i], 0);
	if (ledger->graphs)
		real(cuDeviceGraphMemTrim)((CUdevice)(ledger - ledgers));
	pools_release(ledger);
}

/* Ignores a reading that is older than the last. */
static void note_pools(struct ledger *ledger, uint64_t ticket, uint64_t bytes, uint64_t graphs)
{
	bool held = ledger->pooled || ledger->reserved, holds = bytes || graphs;

	if (ticket < ledger->settled)
		return;
	ledger->settled = ticket;
	if (held != holds)
		atomic_fetch_add(&ledger_pools, holds ? 1 : -1);
	ledger->pooled = bytes;
	ledger->reserved = graphs;
	ledger->left = graphs < ledger->left ? graphs : ledger->left;
}

/* Reads the pools and gives back @taken. True: they fit. */
static bool look(struct ledger *ledger, uint64_t taken)
{
	pthread_mutex_lock(&ledger->lock);
	uint64_t ticket = ++ledger->tickets;
	pthread_mutex_unlock(&ledger->lock);
	uint64_t graphs, bytes = read_pools(ledger, &graphs);

	locked(&ledger->lock);
	ledger->large -= taken;
	note_pools(ledger, ticket, bytes, graphs);
	if (reserve(ledger))
		return true;
	publish(ledger);
	return false;
}

bool ledger_settle(struct ledger *ledger, uint64_t taken)
{
	if (look(ledger, account_chunks(taken)))
		return true;
	trim_pools(ledger);
	look(ledger, 0);
	uint64_t limit, reserved;
	return !ledger_view(ledger, &limit, &reserved) || reserved <= limit;
}

/* Pools may have shrunk, or can be trimmed. */
static bool try_again(struct ledger *ledger, uint64_t bytes)
{
	if (!ledger->n_pools && !ledger->graphs)
		return false;
	look(ledger, 0);
	if (try_take(ledger, bytes))
		return true;
	trim_pools(ledger);
	look(ledger, 0);
	return try_take(ledger, bytes);
}

bool ledger_take(struct ledger *ledger, uint64_t bytes)
{
	uint64_t limit = 0, reserved = 0;

	if (atomic_load(&ledger->closed))
		return false;
	if (try_take(ledger, bytes) || try_again(ledger, bytes))
		return true;
	ledger_view(ledger, &limit, &reserved);
	log_limited(
		LOG_WARNING, 10,
		"out of memory: %llu bytes do not fit, %llu of the container's %llu are reserved",
		(unsigned long long)bytes, (unsigned long long)reserved, (unsigned long long)limit);
	return false;
}

static void change_count(struct ledger *ledger, uint64_t *count, int64_t more)
{
	locked(&ledger->lock);
	*count += (uint64_t)more;
	if (more < 0)
		publish(ledger);
}

/* Nothing is allocated yet, so it may be too much at first. */
static bool add(struct ledger *ledger, uint64_t *count, int64_t more, bool forced)
{
	change_count(ledger, count, more);
	if (more < 0 || ledger_settle(ledger, 0) || forced)
		return true;
	change_count(ledger, count, -more);
	return false;
}

bool ledger_add_variables(int64_t bytes)
{
	bool fits = true;

	atomic_fetch_add(&variables, (uint64_t)bytes);
	for (CUdevice i = 0; i < DEVICES_MAX; i++)
		if (ledgers[i].contexts)
			fits &= ledger_of(i) && ledger_settle(&ledgers[i], 0) &&
				!atomic_load(&ledgers[i].closed);
	if (!fits && bytes > 0)
		ledger_add_variables(-bytes);
	return fits;
}

bool ledger_add_contexts(CUdevice device, int64_t more, bool forced)
{
	if (device < 0 || device >= DEVICES_MAX)
		return true; /* the driver refuses it */
	if (more > 0 && atomic_load(&variables))
		ledger_of(device);
	return add(&ledgers[device], &ledgers[device].contexts, more, forced);
}

bool ledger_add_graph(struct ledger *ledger, uint64_t bytes)
{
	atomic_store(&ledger->graphs, true);
	/* One that does not fit never ran, so the device keeps nothing of it. */
	return add(ledger, &ledger->instantiated, (int64_t)bytes, false);
}

void ledger_drop_graph(struct ledger *ledger, uint64_t bytes)
{
	locked(&ledger->lock);
	ledger->instantiated -= bytes;
	ledger->left += bytes;
}

bool ledger_add_pool(struct ledger *ledger, CUmemoryPool pool)
{
	locked(&ledger->lock);
	for (size_t i = 0; i < ledger->n_pools; i++)
		if (ledger->pools[i] == pool)
			return true;
	if (ledger->n_pools == POOLS_MAX)
		return false;
	ledger->pools[ledger->n_pools++] = pool;
	return true;
}

static void remove_pool(struct ledger *ledger, CUmemoryPool pool)
{
	bool found = false;

	pthread_mutex_lock(&ledger->lock);
	for (size_t i = 0; i < ledger->n_pools && !found; i++) {
		found = ledger->pools[i] == pool;
		if (found)
			ledger->pools[i] = ledger->pools[--ledger->n_pools];
	}
	pthread_mutex_unlock(&ledger->lock);
	while (found && atomic_load(&ledger->readers) > 0)
		sched_yield();
}

void ledger_remove_pool(CUmemoryPool pool)
{
	for (size_t i = 0; i < DEVICES_MAX; i++)
		if (ledgers[i].n_pools)
			remove_pool(&ledgers[i], pool);
}

bool ledger_view(struct ledger *ledger, uint64_t *limit, uint64_t *reserved)
{
	locked(&ledger->lock);
	return memory_view(&ledger->pages, limit, reserved);
}

unsigned ledger_wait_ms(struct ledger *ledger)
{
	locked(&ledger->lock);
	return ledger->pages.limit ? atomic_load(&ledger->pages.limit->wait_ms) : 0;
}

CUdevice ledger_device(const struct ledger *ledger)
{
	return (CUdevice)(ledger - ledgers);
}

bool ledger_counts(const struct ledger *ledger)
{
	return atomic_load(&ledger->counted);
}

void ledger_settle_here(void)
{
	struct ledger *ledger = ledger_here();

	if (ledger && ledger_counts(ledger))
		look(ledger, 0);
}

/* For the ledgers that were used. */
static void *ask_again(void *unused)
{
	(void)unused;
	thread_name("weir-memory");
	for (CUdevice i = 0; i < DEVICES_MAX; i++)
		if (atomic_load(&ledgers[i].retry_at) && !atomic_load(&ledgers[i].asked))
			ledger_of(i);
	return NULL;
}

void ledger_ask_again(bool all)
{
	bool any = false;

	for (size_t i = 0; i < DEVICES_MAX; i++) {
		struct ledger *ledger = &ledgers[i];
		if (!atomic_load(&ledger->retry_at) || (!all && atomic_load(&ledger->asked)))
			continue;
		atomic_store(&ledger->retry_at, 1);
		atomic_store(&ledger->asked, 0);
		any = true;
	}
	if (any)
		thread_start(ask_again, "weir-memory");
}

void ledger_forget(void)
{
	memset(ledgers, 0, sizeof(ledgers));
	for (size_t i = 0; i < DEVICES_MAX; i++) {
		pthread_mutex_init(&ledgers[i].asking, NULL);
		pthread_mutex_init(&ledgers[i].lock, NULL);
	}
	atomic_store(&variables, 0);
	atomic_store(&ledger_pools, 0);
}
