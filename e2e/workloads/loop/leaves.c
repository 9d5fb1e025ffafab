#include "leaves.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <weir/base.h>
#include <weir/loop-link.h>

#define ASK_NS    1000000 /* between two questions for the words */
#define MISSED_NS 200000u /* after demand has ended, the kernel will not leave for it */

/* libweir may not know its level yet. False: there is no libweir, or it is over. */
static bool find_words(struct leaves *leaves)
{
	weir_loops_words_function *words =
		(weir_loops_words_function *)dlsym(RTLD_DEFAULT, "weir_loops_words");
	const struct timespec pause = {.tv_nsec = ASK_NS};
	struct weir_loop_words said;
	void *demand;

	while (words && !atomic_load(&leaves->over)) {
		if (words(NULL, &said) == 0 && said.demand &&
		    cuPointerGetAttribute(&demand, CU_POINTER_ATTRIBUTE_HOST_POINTER,
					  said.demand) == CUDA_SUCCESS) {
			leaves->mask = said.demand_mask;
			atomic_store(&leaves->demand, demand);
			return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

static bool is_demanded(const struct leaves *leaves)
{
	return __atomic_load_n(leaves->demand, __ATOMIC_ACQUIRE) & leaves->mask;
}

static bool is_over(const struct leaves *leaves)
{
	return atomic_load(&leaves->over);
}

/* Demand was set at @since, while launch number @launch ran. */
static void await_end(struct leaves *leaves, uint64_t launch, uint64_t since)
{
	uint64_t demanded = since, now = since;
	struct weir_loop_stats stats;

	do {
		weir_loop_stats(leaves->loop, &stats);
		now = now_ns();
		if (!stats.on_gpu || stats.launches != launch) {
			if (leaves->n < LEAVES_MAX)
				leaves->ns[leaves->n++] = now - since;
			return;
		}
		if (is_demanded(leaves))
			demanded = now;
	} while (now - demanded < MISSED_NS && !is_over(leaves));
	leaves->missed++;
}

static void *watch(void *context)
{
	struct leaves *leaves = context;
	struct weir_loop_stats stats;
	uint64_t ran = 0;

	cuCtxSetCurrent(leaves->context);
	if (!find_words(leaves))
		return NULL;
	while (!is_over(leaves)) {
		weir_loop_stats(leaves->loop, &stats);
		if (!is_demanded(leaves))
			continue;
		/* A launch that still waits behind its gate says nothing. */
		if (stats.on_gpu && stats.ran_ns != ran)
			await_end(leaves, stats.launches, now_ns());
		while (is_demanded(leaves) && !is_over(leaves))
			;
		weir_loop_stats(leaves->loop, &stats);
		ran = stats.ran_ns;
	}
	return NULL;
}

void leaves_begin(struct leaves *leaves, struct weir_loop *loop)
{
	if (!leaves->wanted)
		return;
	leaves->loop = loop;
	atomic_store(&leaves->over, 0);
	CU(cuCtxGetCurrent(&leaves->context));
	if (pthread_create(&leaves->thread, NULL, watch, leaves))
		workload_fail("no thread");
}

void leaves_end(struct leaves *leaves)
{
	if (!leaves->wanted)
		return;
	atomic_store(&leaves->over, 1);
	pthread_join(leaves->thread, NULL);
}

void leaves_print(const struct leaves *leaves)
{
	printf("\"missed\":%zu,\"leaves_ns\":[", leaves->missed);
	for (size_t i = 0; i < leaves->n; i++)
		printf("%s%" PRIu64, i ? "," : "", leaves->ns[i]);
	printf("]");
}
