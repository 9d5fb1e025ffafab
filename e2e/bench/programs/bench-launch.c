/* How long a launch takes the application: cuLaunchKernel of an empty kernel, as the program links
 * it, as cuGetProcAddress gives it, and straight in the driver, past libweir. Batches are short
 * enough for the driver's queue, so nothing waits for the GPU. Prints one line of JSON, in ns a
 * launch: median and p99 of the batches' means, and of single launches; and `added`, the median of
 * what a batch as linked took more than the driver's own next to it.
 */
#include <dlfcn.h>
#include <link.h>
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

/* Another library than the one that the program is linked to has the function: the driver behind
 * libweir. */
static int find_driver(struct dl_phdr_info *library, size_t size, void *found)
{
	struct entry *driver = found;
	Dl_info of;
	void *handle = dlopen(library->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
	void *function = handle && *library->dlpi_name ? dlsym(handle, "cuLaunchKernel") : NULL;

	(void)size;
	if (handle)
		dlclose(handle);
	if (!function || function == (void *)cuLaunchKernel || !dladdr(function, &of) ||
	    (uintptr_t)of.dli_fbase != library->dlpi_addr)
		return 0;
	driver->launch = (__typeof__(cuLaunchKernel) *)function;
	return 1;
}

/* As linked, where there is no libweir. */
static struct entry straight(void)
{
	struct entry driver = {cuLaunchKernel};

	dl_iterate_phdr(find_driver, &driver);
	return driver;
}

static void launch(struct entry entry, CUfunction kernel, CUstream stream)
{
	CUresult result = entry.launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);

	if (result != CUDA_SUCCESS)
		workload_fail_cuda(result, "cuLaunchKernel", __FILE__, __LINE__);
}

/* One batch timed as a whole; returns ns a launch. */
static double time_batch(struct entry entry, CUfunction kernel, CUstream stream,
			 struct figures *figures)
{
	uint64_t begin = now_ns();

	for (unsigned i = 0; i < BATCH; i++)
		launch(entry, kernel, stream);
	double each = (double)(now_ns() - begin) / BATCH;
	samples_add(&figures->batches, each);
	CU(cuStreamSynchronize(stream));
	return each;
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
	struct figures linked = {0}, by_name = {0}, direct = {0};
	struct samples added = {0};
	CUstream stream;

	workload_parse(&w, argc, argv, "ns a launch", NULL);
	uint64_t batches = workload_pick(&w, w.iterations, 20, 1000);
	workload_open(&w, spin_ptx);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUfunction kernel = workload_kernel(&w, "empty");
	struct entry linked_entry = {cuLaunchKernel}, asked_entry = asked();
	struct entry driver_entry = straight();

	workload_ready(&w);
	for (uint64_t i = 0; i < batches && !workload_stopped(&w); i++) {
		double with = time_batch(linked_entry, kernel, stream, &linked);
		samples_add(&added, with - time_batch(driver_entry, kernel, stream, &direct));
		time_batch(asked_entry, kernel, stream, &by_name);
		time_launches(linked_entry, kernel, stream, &linked);
		time_launches(asked_entry, kernel, stream, &by_name);
		time_launches(driver_entry, kernel, stream, &direct);
	}
	CU(cuStreamDestroy(stream));
	workload_close(&w);
	printf("{\"program\": \"bench-launch\", ");
	print("linked", &linked);
	printf(", ");
	print("asked", &by_name);
	printf(", ");
	print("driver", &direct);
	samples_sort(&added);
	printf(", \"added\": %.1f}\n", samples_quantile(&added, 0.5));
	samples_deinit(&added);
	return 0;
}
