#include "parallel.h"

#include <pthread.h>
#include <unistd.h>

#define PARALLEL_MAX 64
#define RANDOM_CHUNK 65536

float random_float(struct random *random, float low, float high)
{
	return low + (high - low) * ((float)random_below(random, 1u << 20) / (1u << 20));
}

struct crew {
	pthread_barrier_t begin, end;
	pthread_t threads[PARALLEL_MAX];
	unsigned started;
	void (*each)(void *context, size_t i); /* NULL: they end */
	void *context;
	size_t next, n;
};

static void work(struct crew *crew)
{
	size_t chunk = crew->n / (8 * PARALLEL_MAX) + 1, begin;

	while ((begin = __atomic_fetch_add(&crew->next, chunk, __ATOMIC_RELAXED)) < crew->n)
		for (size_t i = begin; i < begin + chunk && i < crew->n; i++)
			crew->each(crew->context, i);
}

static void *wait_and_work(void *data)
{
	struct crew *crew = data;

	for (;;) {
		pthread_barrier_wait(&crew->begin);
		if (!crew->each)
			return NULL;
		work(crew);
		pthread_barrier_wait(&crew->end);
	}
}

struct crew *crew_new(void)
{
	struct crew *crew = workload_alloc(sizeof(*crew));
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned wanted = processors > PARALLEL_MAX ? PARALLEL_MAX
			  : processors > 1          ? (unsigned)processors - 1
						    : 0;

	*crew = (struct crew){0};
	pthread_barrier_init(&crew->begin, NULL, wanted + 1);
	pthread_barrier_init(&crew->end, NULL, wanted + 1);
	while (crew->started < wanted)
		if (pthread_create(&crew->threads[crew->started++], NULL, wait_and_work, crew))
			workload_fail("a thread does not start");
	return crew;
}

void crew_run(struct crew *crew, size_t n, void (*each)(void *context, size_t i), void *context)
{
	crew->each = each;
	crew->context = context;
	crew->next = 0;
	crew->n = n;
	pthread_barrier_wait(&crew->begin);
	work(crew);
	pthread_barrier_wait(&crew->end);
}

void crew_free(struct crew *crew)
{
	crew->each = NULL;
	pthread_barrier_wait(&crew->begin);
	for (unsigned i = 0; i < crew->started; i++)
		pthread_join(crew->threads[i], NULL);
	pthread_barrier_destroy(&crew->begin);
	pthread_barrier_destroy(&crew->end);
	free(crew);
}

void in_parallel(size_t n, void (*each)(void *context, size_t i), void *context)
{
	struct crew *crew = crew_new();

	crew_run(crew, n, each, context);
	crew_free(crew);
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
