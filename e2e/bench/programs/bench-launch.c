/* How long a launch takes the application: cuLaunchKernel of an empty kernel, as the program links
 * it and as cuGetProcAddress gives it. Batches are short enough for the driver's queue, so nothing
 * waits for the GPU. Run with and without libweir; the difference is what it adds. Prints one line
 * of JSON, in ns a launch: median and p99 of the batches' means, and of single launches.
 */
#include <stdio.h>

#include <weir/base.h>

#include "samples.h"
#include "spin.h"

#define BATCH         200u /* the driver queues about 1000 */
#define ASKED_VERSION 12000

/* A driver entry point, however it was found. */
struct entry {
	__typeof__(cuLaunchKernel) *launch;
};

struct figures {
	struct samples batches, launches;
};

static struct entry asked(void)
{
	CUdriverProcAddressQueryResult status;
	void *function = NULL;

	CU(cuGetProcAddress("cuLaunchKernel", &function, ASKED_VERSION,
			    CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
	if (!function)
		workload_fail("cuGetProcAddress gives no cuLaunchKernel");
	return (struct entry){(__typeof__(cuLaunchKernel) *)function};
}

static void launch(struct entry entry, CUfunction kernel, CUstream stream)
{
	CUresult result = entry.launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);

	if (result != CUDA_SUCCESS)
		workload_fail_cuda(result, "cuLaunchKernel", __FILE__, __LINE__);
}

/* One batch timed as a whole. */
static void time_batch(struct entry entry, CUfunction kernel, CUstream stream,
		       struct figures *figures)
{
	uint64_t begin = now_ns();

	for (unsigned i = 0; i < BATCH; i++)
		launch(entry, kernel, stream);
	samples_add(&figures->batches, (double)(now_ns() - begin) / BATCH);
	CU(cuStreamSynchronize(stream));
}

/* One batch timed launch by launch; reading the clock is in it. */
static void time_launches(struct entry entry, CUfunction kernel, CUstream stream,
			  struct figures *figures)
{
	uint64_t before = now_ns();

	for (unsigned i = 0; i < BATCH; i++) {
		launch(entry, kernel, stream);
		uint64_t after = now_ns();

		samples_add(&figures->launches, (double)(after - before));
		before = after;
	}
	CU(cuStreamSynchronize(stream));
}

static void print(const char *name, struct figures *figures)
{
	samples_sort(&figures->batches);
	samples_sort(&figures->launches);
	printf("\"%s\": {\"median\": %.1f, \"p99\": %.1f, \"single_median\": %.0f, "
	       "\"single_p99\": %.0f}",
	       name, samples_quantile(&figures->batches, 0.5),
	       samples_quantile(&figures->batches, 0.99), samples_quantile(&figures->launches, 0.5),
	       samples_quantile(&figures->launches, 0.99));
	samples_deinit(&figures->batches);
	samples_deinit(&figures->launches);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct figures linked = {0}, by_name = {0};
	CUstream stream;

	workload_parse(&w, argc, argv, "ns a launch", NULL);
	uint64_t batches = workload_pick(&w, w.iterations, 20, 2000);
	workload_open(&w, spin_ptx);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUfunction kernel = workload_kernel(&w, "empty");
	struct entry linked_entry = {cuLaunchKernel}, asked_entry = asked();

	workload_ready(&w);
	for (uint64_t i = 0; i < batches && !workload_stopped(&w); i++) {
		time_batch(linked_entry, kernel, stream, &linked);
		time_batch(asked_entry, kernel, stream, &by_name);
		time_launches(linked_entry, kernel, stream, &linked);
		time_launches(asked_entry, kernel, stream, &by_name);
	}
	CU(cuStreamDestroy(stream));
	workload_close(&w);
	printf("{\"program\": \"bench-launch\", ");
	print("linked", &linked);
	printf(", ");
	print("asked", &by_name);
	printf("}\n");
	return 0;
}
