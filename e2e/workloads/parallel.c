#include "parallel.h"

#include <pthread.h>
#include <unistd.h>

#define PARALLEL_MAX 64
#define RANDOM_CHUNK 65536

float random_float(struct random *random, float low, float high)
{
	return low + (high - low) * ((float)random_below(random, 1u << 20) / (1u << 20));
}

struct parallel {
	void (*each)(void *context, size_t i);
	void *context;
	size_t next, n;
};

static void *work(void *data)
{
	struct parallel *parallel = data;
	size_t chunk = parallel->n / (8 * PARALLEL_MAX) + 1, begin;

	while ((begin = __atomic_fetch_add(&parallel->next, chunk, __ATOMIC_RELAXED)) < parallel->n)
		for (size_t i = begin; i < begin + chunk && i < parallel->n; i++)
			parallel->each(parallel->context, i);
	return NULL;
}

void in_parallel(size_t n, void (*each)(void *context, size_t i), void *context)
{
	struct parallel parallel = {each, context, 0, n};
	pthread_t threads[PARALLEL_MAX];
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int started = 0;

	while (started < PARALLEL_MAX && started + 1 < processors && (size_t)started + 1 < n &&
	       pthread_create(&threads[started], NULL, work, &parallel) == 0)
		started++;
	work(&parallel);
	while (started > 0)
		pthread_join(threads[--started], NULL);
}

struct chunks {
	uint64_t seed;
	float *floats;
	uint32_t *words; /* one of the two is NULL */
	size_t n;
	float low, high;
};

static void fill_chunk(void *context, size_t i)
{
	const struct chunks *chunks = context;
	size_t begin = i * RANDOM_CHUNK, end = begin + RANDOM_CHUNK;
	struct random random = {chunks->seed + i};

	random.state = random_next(&random);
	for (size_t at = begin; at < end && at < chunks->n; at++)
		if (chunks->floats)
			chunks->floats[at] = random_float(&random, chunks->low, chunks->high);
		else
			chunks->words[at] = (uint32_t)random_next(&random);
}

void random_floats(struct random *random, float *values, size_t n, float low, float high)
{
	struct chunks chunks = {random_next(random), values, NULL, n, low, high};

	in_parallel((n + RANDOM_CHUNK - 1) / RANDOM_CHUNK, fill_chunk, &chunks);
}

void random_words(struct random *random, uint32_t *values, size_t n)
{
	struct chunks chunks = {random_next(random), NULL, values, n, 0, 0};

	in_parallel((n + RANDOM_CHUNK - 1) / RANDOM_CHUNK, fill_chunk, &chunks);
}
