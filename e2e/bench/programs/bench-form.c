/* The forms persistent and resumable on a GPU, alone: their time against the native kernel's, and
 * how long a launch takes to leave from the moment that demand is set (host store to stream idle,
 * as the host sees it), at random moments. Evicted launches are continued to their end, and every
 * value is checked. Run it without libweir. Prints one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/base.h>
#include <weir/tickets.h>
#include <weir/transform.h>

#include "samples.h"
#include "spin.h"

extern const char spin_forms_ptx[];

#define PAGE 4096u
#define RUNS 9u

#define SAVE_FIXED      65536u
#define SAVE_PER_THREAD 256u
#define EXCHANGE_PERIOD 64u

struct form {
	CUfunction kernel;
	uint32_t workers;
	struct weir_persistent hidden;
	CUdeviceptr words, saves;
	volatile uint64_t *demand; /* written by us, read by the GPU */
};

static void form_init(struct form *form, const struct workload *w, const struct spin *spin,
		      enum weir_form kind, uint32_t chunk)
{
	char name[64];
	int resident;
	int fd = memfd_create("demand", MFD_CLOEXEC);
	CUdeviceptr demand;

	if (fd < 0 || ftruncate(fd, PAGE) < 0)
		workload_fail("no shared memory");
	form->demand = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (form->demand == MAP_FAILED)
		workload_fail("shared memory cannot be mapped");
	close(fd);
	CU(cuMemHostRegister((void *)form->demand, PAGE, CU_MEMHOSTREGISTER_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&demand, (void *)form->demand, 0));
	CU(cuMemAlloc(&form->words, sizeof(struct weir_words)));
	CU(cuMemsetD8(form->words, 0, sizeof(struct weir_words)));
	CU(cuCtxSynchronize());

	snprintf(name, sizeof(name), "%s%s", spin->period ? "spin_exchange" : "spin",
		 weir_form_suffix(kind));
	form->kernel = workload_kernel(w, name);
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, form->kernel, (int)spin->threads,
						       spin_shared(spin)));
	form->workers = (uint32_t)resident * (uint32_t)w->sm_count;
	form->hidden = (struct weir_persistent){
		.words = form->words,
		.demand = demand,
		.grid = {spin->blocks, 1, 1},
		.blocks = spin->blocks,
		.period = 8000,
		.look = WEIR_LOOK,
		.lead = WEIR_LEAD,
	};
	weir_cut(&form->hidden, chunk, form->workers, 1, WEIR_TICKETS_IN_ROW);
	if (form->workers > form->hidden.tickets)
		form->workers = form->hidden.tickets;
	form->hidden.dealt = form->workers;
	/* More than anything in these kernels needs (bench-kernels asks the transformer). */
	form->hidden.save_stride = SAVE_FIXED + SAVE_PER_THREAD * spin->threads;
	CU(cuMemAlloc(&form->saves, form->workers * form->hidden.save_stride));
	form->hidden.saves = form->saves;
}

/* Starts the launch, or continues it. */
static void form_launch(struct form *form, struct spin *spin, CUstream stream)
{
	void *parameters[] = {&spin->state, &spin->iterations, &form->hidden, &form->hidden};

	if (spin->period)
		parameters[2] = &spin->period;
	CU(cuLaunchKernel(form->kernel, form->workers, 1, 1, spin->threads, 1, 1,
			  (unsigned)spin_shared(spin), stream, parameters, NULL));
}

static bool form_done(const struct form *form)
{
	uint32_t done;

	CU(cuMemcpyDtoH(&done, form->words + offsetof(struct weir_words, done), sizeof(done)));
	return done == form->hidden.serial;
}

static double time_native(struct spin *spin, CUstream stream)
{
	uint64_t begin = now_ns();

	spin_launch(spin, stream);
	CU(cuStreamSynchronize(stream));
	return (double)(now_ns() - begin) / 1e3;
}

static double time_form(struct form *form, struct spin *spin, CUstream stream)
{
	uint64_t begin = now_ns();

	form->hidden.serial++;
	form_launch(form, spin, stream);
	CU(cuStreamSynchronize(stream));
	double us = (double)(now_ns() - begin) / 1e3;
	if (!form_done(form))
		workload_fail("a launch that nobody stopped is not done");
	spin->launches++;
	return us;
}

/* One launch, stopped once @after ns; adds the delay to @delays if it was still running. */
static void evict(struct form *form, struct spin *spin, CUstream stream, uint64_t after,
		  struct samples *delays)
{
	form->hidden.serial++;
	form_launch(form, spin, stream);
	uint64_t until = now_ns() + after;
	while (now_ns() < until)
		;
	uint64_t begin = now_ns();
	*form->demand = 1;
	CU(cuStreamSynchronize(stream));
	double us = (double)(now_ns() - begin) / 1e3;
	if (!form_done(form))
		samples_add(delays, us);
	*form->demand = 0;
	while (!form_done(form)) {
		form_launch(form, spin, stream);
		CU(cuStreamSynchronize(stream));
	}
	spin->launches++;
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	uint64_t chunk = 1, trials = 0;
	const char *kind_name = "persistent";
	bool exchange = false;
	const struct workload_option own[] = {
		{"chunk", OPTION_NUMBER, &chunk, "blocks of a ticket"},
		{"trials", OPTION_NUMBER, &trials, "evictions"},
		{"form", OPTION_TEXT, &kind_name, "persistent (default) or resumable"},
		{"exchange", OPTION_FLAG, &exchange, "a kernel with barriers"},
		{0},
	};
	struct samples native = {0}, formed = {0}, delays = {0};
	struct form form;
	struct spin spin;
	CUstream stream;

	workload_parse(&w, argc, argv, "a form: its cost, and how soon it leaves", own);
	enum weir_form kind = strcmp(kind_name, "resumable") ? WEIR_PERSISTENT : WEIR_RESUMABLE;
	workload_open(&w, spin_forms_ptx);
	spin_init(&spin, &w,
		  (uint32_t)workload_pick(&w, w.size, 16, (uint64_t)w.sm_count * 8 * 100),
		  (uint32_t)workload_pick(&w, 0, 32, 256),
		  (uint32_t)workload_pick(&w, w.iterations, 32, 500));
	if (exchange)
		spin_exchange(&spin, &w, EXCHANGE_PERIOD);
	form_init(&form, &w, &spin, kind, (uint32_t)chunk);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

	workload_ready(&w);
	for (unsigned i = 0; i < RUNS; i++) {
		samples_add(&native, time_native(&spin, stream));
		samples_add(&formed, time_form(&form, &spin, stream));
	}
	samples_sort(&native);
	samples_sort(&formed);
	double alone = samples_quantile(&native, 0.5), length = samples_quantile(&formed, 0.5);
	struct random random = {w.seed};
	trials = workload_pick(&w, trials, 20, 300);
	for (uint64_t i = 0; i < trials; i++)
		evict(&form, &spin, stream, random_below(&random, (uint32_t)(length * 1e3)),
		      &delays);
	spin_verify(&spin);
	samples_sort(&delays);
	printf("{\"program\": \"bench-form\", \"form\": \"%s\", \"exchange\": %s, \"blocks\": %u, "
	       "\"chunk\": %llu, \"workers\": %u, "
	       "\"native_us\": %.1f, \"form_us\": %.1f, \"ratio\": %.4f, \"evicted\": %zu, "
	       "\"delay_median_us\": %.1f, \"delay_p99_us\": %.1f, \"delay_max_us\": %.1f}\n",
	       weir_form_name(kind), exchange ? "true" : "false", spin.blocks,
	       (unsigned long long)chunk, form.workers, alone, length, length / alone, delays.n,
	       samples_quantile(&delays, 0.5), samples_quantile(&delays, 0.99),
	       samples_quantile(&delays, 1));
	spin_deinit(&spin);
	CU(cuStreamDestroy(stream));
	workload_close(&w);
	return 0;
}
