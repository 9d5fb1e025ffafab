/* Addresses that the device may use: a sorted table of ranges. Blocks look up addresses from many
 * threads, so the table has its own lock and each thread caches its last answer. */
#include "simcuda/driver/exec.h"

#include <stdlib.h>
#include <string.h>

static struct {
	pthread_rwlock_t lock;
	struct range *ranges; /* by base */
	size_t n, room;
	_Atomic uint64_t generation; /* counts removals, which invalidate the threads' caches */
	uint64_t next_id;
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER, .generation = 1};

/* The first range that ends behind @address; n: none. */
static size_t lower_bound(uintptr_t address)
{
	size_t low = 0, high = table.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct range *r = &table.ranges[middle];

		if (r->base + r->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool range_find(uintptr_t address, struct range *out)
{
	bool found = false;
	size_t i;

	pthread_rwlock_rdlock(&table.lock);
	i = lower_bound(address);
	if (i < table.n && table.ranges[i].base <= address) {
		*out = table.ranges[i];
		found = true;
	}
	pthread_rwlock_unlock(&table.lock);
	return found;
}

/* Only an access to mappings may cross from one into the next. */
static bool allows_slowly(uintptr_t address, size_t size, bool write, struct range *first)
{
	uintptr_t at = address;

	for (size_t i = lower_bound(address); i < table.n; i++) {
		const struct range *r = &table.ranges[i];

		if (r->base > at || r->no_access || (write && r->read_only))
			return false;
		if (at != address && (r->kind != RANGE_MAPPED || first->kind != RANGE_MAPPED))
			return false;
		if (at == address)
			*first = *r;
		if (size <= r->base + r->size - at)
			return true;
		size -= r->base + r->size - at;
		at = r->base + r->size;
	}
	return false;
}

bool range_allows(uintptr_t address, size_t size, bool write)
{
	static __thread struct {
		uint64_t generation;
		uintptr_t base, end;
		bool read_only;
	} last;
	struct range first = {0};
	uint64_t generation = atomic_load(&table.generation);
	bool allowed;

	if (last.generation == generation && address >= last.base && address < last.end &&
	    size <= last.end - address && !(write && last.read_only))
		return true;
	pthread_rwlock_rdlock(&table.lock);
	allowed = allows_slowly(address, size, write, &first);
	pthread_rwlock_unlock(&table.lock);
	if (allowed) {
		last.generation = generation;
		last.base = first.base;
		last.end = first.base + first.size;
		last.read_only = first.read_only;
	}
	return allowed;
}

static CUresult insert(const struct range *range)
{
	size_t i = lower_bound(range->base);

	if (i < table.n && table.ranges[i].base < range->base + range->size)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (table.n == table.room) {
		size_t room = table.room ? 2 * table.room : 64;
		struct range *ranges = realloc(table.ranges, room * sizeof(*ranges));

		if (!ranges)
			return CUDA_ERROR_OUT_OF_MEMORY;
		table.ranges = ranges;
		table.room = room;
	}
	memmove(&table.ranges[i + 1], &table.ranges[i], (table.n - i) * sizeof(*range));
	table.ranges[i] = *range;
	table.ranges[i].id = ++table.next_id;
	table.n++;
	return CUDA_SUCCESS;
}

CUresult range_add(const struct range *range)
{
	CUresult r;

	if (!range->size || range->base + range->size < range->base)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&table.lock);
	r = insert(range);
	pthread_rwlock_unlock(&table.lock);
	return r;
}

static void remove_at(size_t i)
{
	table.n--;
	memmove(&table.ranges[i], &table.ranges[i + 1], (table.n - i) * sizeof(*table.ranges));
	atomic_fetch_add(&table.generation, 1);
}

bool range_remove(uintptr_t base, struct range *out)
{
	bool found = false;
	size_t i;

	pthread_rwlock_wrlock(&table.lock);
	i = lower_bound(base);
	if (i < table.n && table.ranges[i].base == base) {
		*out = table.ranges[i];
		remove_at(i);
		found = true;
	}
	pthread_rwlock_unlock(&table.lock);
	return found;
}

bool range_take(const struct context *ctx, const void *owner, struct range *out)
{
	bool found = false;

	pthread_rwlock_wrlock(&table.lock);
	for (size_t i = table.n; !found && i-- > 0;) {
		if (table.ranges[i].ctx != ctx || (owner && table.ranges[i].owner != owner))
			continue;
		*out = table.ranges[i];
		remove_at(i);
		found = true;
	}
	pthread_rwlock_unlock(&table.lock);
	return found;
}

/* A range is freed only once, however often a program asks for it. */
bool range_give_up(uintptr_t base)
{
	bool found = false;
	size_t i;

	pthread_rwlock_wrlock(&table.lock);
	i = lower_bound(base);
	if (i < table.n && table.ranges[i].base == base && !table.ranges[i].given_up &&
	    (table.ranges[i].kind == RANGE_POOL || table.ranges[i].kind == RANGE_DEVICE)) {
		table.ranges[i].given_up = true;
		found = true;
	}
	pthread_rwlock_unlock(&table.lock);
	return found;
}

void range_set_access(uintptr_t base, bool read, bool write)
{
	size_t i;

	pthread_rwlock_wrlock(&table.lock);
	i = lower_bound(base);
	if (i < table.n && table.ranges[i].base == base) {
		table.ranges[i].no_access = !read;
		table.ranges[i].read_only = !write;
		atomic_fetch_add(&table.generation, 1);
	}
	pthread_rwlock_unlock(&table.lock);
}
