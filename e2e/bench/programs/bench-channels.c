/* Does a stream get through while other streams of its process sit at closed waits? A wait blocks
 * the hardware channel of its stream, and all streams of a process share
 * CUDA_DEVICE_MAX_CONNECTIONS channels. So the end of a wait must never depend on another stream.
 * That is why continuations of an evicted kernel stand in its own stream. Run it without libweir;
 * on the simulated GPU each stream has a channel. Prints one line of JSON for each number of
 * blocked streams and priority of the free one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/base.h>

#include "spin.h"

#define STREAMS_MAX 64u
#define TIMEOUT_NS  200000000u /* ns */

struct probe {
	struct spin spin;
	volatile uint32_t *open; /* 1 opens all waits */
	CUdeviceptr open_address;
	CUstream blocked[STREAMS_MAX], ours;
};

/* Each stream has a kernel in front of the closed wait and one behind it. */
static void block(struct probe *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CU(cuStreamCreate(&p->blocked[i], CU_STREAM_NON_BLOCKING));
		spin_launch(&p->spin, p->blocked[i]);
		CU(cuStreamWaitValue32(p->blocked[i], p->open_address, 1, CU_STREAM_WAIT_VALUE_EQ));
		spin_launch(&p->spin, p->blocked[i]);
	}
}

static bool is_idle_soon(CUstream stream)
{
	uint64_t begin = now_ns();

	while (now_ns() - begin < TIMEOUT_NS) {
		if (cuStreamQuery(stream) == CUDA_SUCCESS)
			return true;
	}
	return false;
}

static void unblock(struct probe *p, unsigned n)
{
	*p->open = 1;
	for (unsigned i = 0; i < n; i++) {
		CU(cuStreamSynchronize(p->blocked[i]));
		CU(cuStreamDestroy(p->blocked[i]));
	}
	*p->open = 0;
}

static bool gets_through(struct probe *p, unsigned n, int priority)
{
	CU(cuStreamCreateWithPriority(&p->ours, CU_STREAM_NON_BLOCKING, priority));
	block(p, n);
	spin_launch(&p->spin, p->ours);
	bool through = is_idle_soon(p->ours);
	unblock(p, n);
	CU(cuStreamSynchronize(p->ours));
	CU(cuStreamDestroy(p->ours));
	return through;
}

int main(int argc, char **argv)
{
	static const unsigned counts[] = {0, 1, 3, 6, 7, 8, 15, 31, 32, 64};
	struct workload w = {.seed = 1};
	struct probe p = {0};
	int least, greatest;
	const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

	workload_parse(&w, argc, argv, "streams blocked by waits, and one that is not", NULL);
	workload_open(&w, spin_ptx);
	spin_init(&p.spin, &w, 1, 32, 32);
	CU(cuMemHostAlloc((void **)&p.open, sizeof(*p.open), CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&p.open_address, (void *)p.open, 0));
	*p.open = 0;
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	workload_ready(&w);
	for (unsigned k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		for (int urgent = 0; urgent < 2; urgent++) {
			int priority = urgent ? greatest : least;
			printf("{\"program\": \"bench-channels\", \"connections\": \"%s\", "
			       "\"blocked\": %u, \"priority\": %d, \"through\": %s}\n",
			       connections ? connections : "default", counts[k], priority,
			       gets_through(&p, counts[k], priority) ? "true" : "false");
		}
	}
	CU(cuMemFreeHost((void *)p.open));
	spin_deinit(&p.spin);
	workload_close(&w);
	return 0;
}
