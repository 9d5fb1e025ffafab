/* Every way in which a process takes memory of a GPU, against its container's limit.
 *
 *   --way NAME   takes piece after piece in this way, until it is refused. That is after one piece
 *                or more, never beyond the limit. Then gives all back, and the limit can be had
 *   --list       the ways' names
 *   --race       takes and gives back at random, in all ways
 *   --watch MAX  instead looks on what the GPU says is in use, which is never more
 *
 * Without libweir nothing is refused, so whoever watches sees more than the limit. */
#include "workloads/memory/ways.h"

#include <stdio.h>
#include <string.h>

/* CUDA_ERROR_OUT_OF_MEMORY and CUDA_ERROR_NOT_SUPPORTED are results, others are failures. */
static CUresult take_one(struct taker *t, const struct way *way)
{
	struct item *item = &t->items[t->n];

	*item = (struct item){.way = way};
	CUresult result = way->make(t, item);
	if (result == CUDA_SUCCESS)
		t->n++;
	else if (result != CUDA_ERROR_OUT_OF_MEMORY && result != CUDA_ERROR_NOT_SUPPORTED)
		workload_fail_cuda(result, way->name, __FILE__, __LINE__);
	return result;
}

static void drop_one(struct taker *t, size_t i)
{
	struct item item = t->items[i];

	t->items[i] = t->items[--t->n];
	item.way->drop(t, &item);
}

static void drop_all(struct taker *t)
{
	while (t->n > 0)
		drop_one(t, t->n - 1);
	CU(cuCtxSynchronize());
}

/* Until it is refused. False: the driver has no such way. */
static bool fill(struct taker *t, const struct way *way)
{
	CUresult result = CUDA_SUCCESS;

	while (t->n < ITEMS && result == CUDA_SUCCESS)
		result = take_one(t, way);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return false;
	printf("%s: %zu pieces\n", way->name, t->n);
	if (result != CUDA_ERROR_OUT_OF_MEMORY || !t->n || t->n * t->piece > t->limit)
		workload_fail("%zu pieces of %zu bytes at a limit of %zu", t->n, t->piece,
			      t->limit);
	return true;
}

static void try_way(struct taker *t, const char *name)
{
	CUdeviceptr address;
	const struct way *way = ways;

	while (way < ways + n_ways && strcmp(way->name, name) != 0)
		way++;
	if (way == ways + n_ways)
		workload_fail("no way '%s'", name);
	if (!fill(t, way)) {
		printf("%s: not supported\n", name);
		return;
	}
	/* Nothing else fits either; then all of it can be had again, and once more after a reset.
	 */
	if (cuMemAlloc(&address, t->limit - t->piece + 1) != CUDA_ERROR_OUT_OF_MEMORY)
		workload_fail("memory beyond the limit");
	drop_all(t);
	CU(cuMemAlloc(&address, t->limit - t->piece + 1));
	CU(cuMemFree(address));
	fill(t, way);
	CU(cuCtxDestroy(t->other));
	CU(cuDevicePrimaryCtxReset(t->workload->device));
}

static void race(struct taker *t)
{
	struct random random = {t->workload->seed};
	uint64_t taken = 0, refused = 0;

	for (uint64_t i = 0; i < t->workload->iterations; i++) {
		const struct way *way = &ways[random_below(&random, n_ways)];
		CUresult result = t->n < ITEMS ? take_one(t, way) : CUDA_ERROR_OUT_OF_MEMORY;
		taken += result == CUDA_SUCCESS;
		refused += result == CUDA_ERROR_OUT_OF_MEMORY;
		for (uint32_t n = random_below(&random, 3); n > 0 && t->n > 0; n--)
			drop_one(t, random_below(&random, (uint32_t)t->n));
	}
	drop_all(t);
	printf("%llu taken, %llu refused\n", (unsigned long long)taken,
	       (unsigned long long)refused);
}

/* The most that was in use beyond what there was at first. */
static void watch(struct workload *workload, uint64_t most)
{
	size_t free_bytes, total, first;
	uint64_t seen = 0, looks = 0;

	workload_open(workload, NULL);
	CU(cuMemGetInfo(&first, &total));
	workload_ready(workload);
	for (; !workload_stopped(workload); looks++) {
		CU(cuMemGetInfo(&free_bytes, &total));
		if (free_bytes < first && first - free_bytes > seen)
			seen = first - free_bytes;
	}
	printf("%llu looks, at most %llu of %llu bytes\n", (unsigned long long)looks,
	       (unsigned long long)seen, (unsigned long long)most);
	if (seen > most)
		workload_fail("over the limit");
	workload_close(workload);
}

int main(int argc, char **argv)
{
	const char *way = NULL;
	bool list = false, racing = false;
	uint64_t most = 0;
	const struct workload_option options[] = {
		{"way", OPTION_TEXT, &way, "take pieces of --size bytes in this way"},
		{"list", OPTION_FLAG, &list, "the ways"},
		{"race", OPTION_FLAG, &racing, "take --iterations pieces at random"},
		{"watch", OPTION_NUMBER, &most, "look on: never more than so many bytes"},
		{0},
	};
	struct workload workload = {0};

	workload_parse(&workload, argc, argv, "takes memory in every way", options);
	for (size_t i = 0; list && i < n_ways; i++)
		printf("%s\n", ways[i].name);
	if (most)
		watch(&workload, most);
	if (!way && !racing)
		return 0;
	struct taker *t = workload_alloc(sizeof(*t));
	*t = (struct taker){.workload = &workload};
	taker_open(t);
	if (racing)
		race(t);
	else
		try_way(t, way);
	return 0;
}
