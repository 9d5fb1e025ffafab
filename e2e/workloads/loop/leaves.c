#include "leaves.h"

#include <dlfcn.h>
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
	uint64_t progress = *leaves->progress;
	struct weir_loop_stats stats;

	cuCtxSetCurrent(leaves->context);
	if (!find_words(leaves))
		return NULL;
	while (!is_over(leaves)) {
		weir_loop_stats(leaves->loop, &stats);
		if (!is_demanded(leaves))
			continue;
		/* A launch that still waits behind its gate says nothing. */
		if (stats.on_gpu && *leaves->progress != progress)
			await_end(leaves, stats.launches, now_ns());
		progress = *leaves->progress;
		while (is_demanded(leaves) && !is_over(leaves))
			progress = *leaves->progress;
	}
	return NULL;
}

void leaves_begin(struct leaves *leaves, struct weir_loop *loop, const volatile uint64_t *progress)
{
	leaves->loop = loop;
	leaves->progress = progress;
	CU(cuCtxGetCurrent(&leaves->context));
	if (pthread_create(&leaves->thread, NULL, watch, leaves))
		workload_fail("no thread");
}

void leaves_end(struct leaves *leaves)
{
	atomic_store(&leaves->over, 1);
	pthread_join(leaves->thread, NULL);
}
