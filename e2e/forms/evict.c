/* A launcher that is preloaded into a workload. It runs each kernel in the form $FORMS_FORM
 * (persistent, resumable or sliced) as preempt-abi.h says, and evicts it at random moments. The
 * workload then checks its results as usual. Works on real and simulated GPUs.
 *
 * A launch returns when its kernel is done. That is enough for workloads whose kernels need nothing
 * from the host while they run. With FORMS_BESIDE set, continuations run beside the program, one
 * launch at a time, until the program waits for a stream or launches the next kernel. With
 * FORMS_CALM set, no kernel is asked to leave and nobody waits; for measurements. Prints a summary
 * at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "random.h"

#include "weir/tickets.h"
#include "weir/transform.h"

#define EXPORT         __attribute__((visibility("default")))
#define FUNCTIONS_MAX  256
#define PARAMETERS_MAX 64
#define PERIOD_NS      8000u
#define SLICES         5u
#define DRAIN          100000u /* cycles: blocks are finished rather than saved */
#define SMS_LEFT       16u     /* at most; more than the simulated GPU has */

#define REAL(name)    ((__typeof__(name) *)dlsym(RTLD_NEXT, name_of(name)))
#define name_of(name) #name

struct pair {
	CUfunction native, formed;
	size_t parameters;
	CUdeviceptr words;
	uint32_t serial, partial;             /* launches that left some SMs, as of the last look */
	uint32_t save_fixed, save_per_thread; /* resumable (weir/transform.h) */
	CUdeviceptr saves;
	size_t saves_size;
};

/* The verdict on a kernel, noted when its module was loaded; newest first. */
struct save {
	char kernel[128];
	uint32_t fixed, per_thread;
};

static struct {
	enum weir_form form;
	bool is_calm, is_beside;
	struct pair pairs[FUNCTIONS_MAX];
	size_t count;
	struct save saves[FUNCTIONS_MAX];
	size_t save_count;
	volatile uint64_t *demand;
	volatile uint32_t *sms; /* to be left to others; 8 bytes behind the demand */
	CUdeviceptr demand_address;
	_Atomic bool stop;
	pthread_t demand_thread;
	uint64_t random;
	unsigned natives, launches, continuations;
} state;

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "forms: %s: error %d\n", what, (int)result);
	exit(3);
}
#define MUST(call) must(call, #call)

/* Demands some SMs now and then, and the GPU for a while, then not. */
static void *ask(void *data)
{
	uint64_t random = 4711;

	(void)data;
	while (!state.stop) {
		for (unsigned k = random_below(&random, 4); k; k--) {
			usleep(random_below(&random, 100));
			*state.sms = random_below(&random, 2) ? random_below(&random, SMS_LEFT) : 0;
		}
		usleep(random_below(&random, 100));
		*state.demand = 1;
		usleep(random_below(&random, 100));
		*state.demand = 0;
	}
	return NULL;
}

static void report(void)
{
	unsigned partial = 0;

	for (size_t k = 0; k < state.count; k++)
		partial += state.pairs[k].partial;
	state.stop = true;
	if (state.demand_thread)
		pthread_join(state.demand_thread, NULL);
	fprintf(stderr, "forms: %u launches, %u continuations, %u partial, %u native\n",
		state.launches, state.continuations, partial, state.natives);
}

static void init(void)
{
	const char *form = getenv("FORMS_FORM");
	/* Static, because it has to outlive the context. */
	static uint64_t page[512] __attribute__((aligned(4096))) = {1};

	if (state.form)
		return;
	state.form = form && !strcmp(form, "sliced")      ? WEIR_SLICED
		     : form && !strcmp(form, "resumable") ? WEIR_RESUMABLE
							  : WEIR_PERSISTENT;
	state.is_calm = getenv("FORMS_CALM");
	state.is_beside = getenv("FORMS_BESIDE");
	state.random = 42;
	MUST(cuMemHostRegister(page, sizeof(page), CU_MEMHOSTREGISTER_DEVICEMAP));
	MUST(cuMemHostGetDevicePointer(&state.demand_address, page, 0));
	state.demand_address += sizeof(uint64_t);
	state.demand = &page[1];
	state.sms = (volatile uint32_t *)&page[2];
	if (!state.is_calm)
		pthread_create(&state.demand_thread, NULL, ask, NULL);
	atexit(report);
}

static void note_save(void *data, const struct weir_verdict *verdict)
{
	struct save *save = &state.saves[state.save_count % FUNCTIONS_MAX];

	(void)data;
	state.save_count++;
	snprintf(save->kernel, sizeof(save->kernel), "%s", verdict->kernel);
	save->fixed = verdict->save_fixed;
	save->per_thread = verdict->save_per_thread;
}

static void find_save(struct pair *pair, const char *kernel)
{
	size_t first = state.save_count > FUNCTIONS_MAX ? state.save_count - FUNCTIONS_MAX : 0;

	for (size_t k = first; k < state.save_count; k++) {
		const struct save *save = &state.saves[k % FUNCTIONS_MAX];

		if (strcmp(save->kernel, kernel) != 0)
			continue;
		pair->save_fixed = save->fixed;
		pair->save_per_thread = save->per_thread;
	}
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	struct weir_transform_options options = {.verdict = note_save};
	struct weir_error error;
	CUresult result;
	size_t len;
	char *text;

	init();
	options.forms = 1u << state.form;
	if (weir_transform(&text, &len, image, strlen(image), &options, &error)) {
		fprintf(stderr, "forms: line %u: %s\n", error.line, error.message);
		exit(3);
	}
	result = REAL(cuModuleLoadData)(module, text);
	free(text);
	return result;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CUresult result = REAL(cuModuleGetFunction)(function, module, name);
	struct pair *pair = &state.pairs[state.count];
	size_t offset, size;
	char formed[256];

	if (result || state.count == FUNCTIONS_MAX)
		return result;
	snprintf(formed, sizeof(formed), "%s%s", name, weir_form_suffix(state.form));
	*pair = (struct pair){.native = *function};
	if (REAL(cuModuleGetFunction)(&pair->formed, module, formed))
		return result;
	while (!cuFuncGetParamInfo(*function, pair->parameters, &offset, &size))
		pair->parameters++;
	find_save(pair, name);
	MUST(cuMemAlloc(&pair->words, sizeof(struct weir_words)));
	MUST(cuMemsetD8(pair->words, 0, sizeof(struct weir_words)));
	MUST(cuCtxSynchronize());
	state.count++;
	return result;
}

/* Searches the newest first, because handles are reused after a module is unloaded. */
static struct pair *find(CUfunction function)
{
	for (size_t k = state.count; k-- > 0;)
		if (state.pairs[k].native == function)
			return &state.pairs[k];
	return NULL;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	const struct pair *pair = find(function);

	if (pair)
		MUST(REAL(cuFuncSetAttribute)(pair->formed, attribute, value));
	return REAL(cuFuncSetAttribute)(function, attribute, value);
}

struct launch {
	struct pair *pair;
	unsigned grid[3], block[3], shared;
	CUstream stream;
	void *parameters[PARAMETERS_MAX];
	struct weir_persistent hidden;
	unsigned workers;
};

static void start(const struct launch *l, unsigned x, unsigned y, unsigned z)
{
	MUST(REAL(cuLaunchKernel)(l->pair->formed, x, y, z, l->block[0], l->block[1], l->block[2],
				  l->shared, l->stream, (void **)l->parameters, NULL));
}

static void run_sliced(struct launch *l)
{
	struct weir_slice slice = {.grid = {l->grid[0], l->grid[1], l->grid[2]}};
	unsigned step = state.is_calm ? l->grid[0] : 1 + l->grid[0] / SLICES;

	l->parameters[l->pair->parameters] = &slice;
	for (; slice.first[0] < l->grid[0]; slice.first[0] += step) {
		unsigned left = l->grid[0] - slice.first[0];

		start(l, left < step ? left : step, l->grid[1], l->grid[2]);
	}
	l->parameters[l->pair->parameters] = NULL;
}

static unsigned worker_count(const struct launch *l)
{
	int blocks, sms;
	CUdevice device;

	MUST(cuCtxGetDevice(&device));
	MUST(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(
		&blocks, l->pair->formed, (int)(l->block[0] * l->block[1] * l->block[2]),
		l->shared));
	return (unsigned)(blocks * sms);
}

/* Memory for the saves of all workers. */
static void prepare_saves(struct pair *pair, const struct launch *l, unsigned workers,
			  struct weir_persistent *hidden)
{
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	uint64_t stride = pair->save_fixed + pair->save_per_thread * threads + l->shared;

	stride = (stride + 255) / 256 * 256;
	if (pair->saves_size < workers * stride) {
		if (pair->saves)
			MUST(cuMemFree(pair->saves));
		pair->saves_size = workers * stride;
		MUST(cuMemAlloc(&pair->saves, pair->saves_size));
	}
	hidden->saves = pair->saves;
	hidden->save_stride = stride;
}

static bool is_done(const struct launch *l)
{
	struct weir_words words;

	MUST(REAL(cuStreamSynchronize)(l->stream));
	MUST(cuMemcpyDtoH(&words, l->pair->words, sizeof(words)));
	l->pair->partial = words.partial;
	return words.done == l->pair->serial;
}

static void run_persistent(struct launch *l)
{
	unsigned blocks = l->grid[0] * l->grid[1] * l->grid[2];
	struct weir_persistent *hidden = &l->hidden;
	const char *chunk = getenv("FORMS_CHUNK");

	*hidden = (struct weir_persistent){.words = l->pair->words,
					   .demand = state.demand_address,
					   .grid = {l->grid[0], l->grid[1], l->grid[2]},
					   .blocks = blocks,
					   .serial = ++l->pair->serial,
					   .period = PERIOD_NS,
					   .fresh = 1,
					   .drain = random_below(&state.random, 2) ? DRAIN : 0,
					   .look = WEIR_LOOK,
					   .lead = random_below(&state.random, 2) ? WEIR_LEAD : 0,
					   .kind = (uint32_t)(l->pair - state.pairs)};
	if (random_below(&state.random, 2)) {
		hidden->room = state.demand_address + sizeof(uint64_t);
		hidden->quota = weir_quota(*state.sms);
	}
	l->workers = worker_count(l);
	weir_cut(hidden, chunk ? (unsigned)atoi(chunk) : 1 + random_below(&state.random, 8),
		 l->workers, (int)random_below(&state.random, 2),
		 hidden->room ? WEIR_TICKETS_IN_ROW
			      : (enum weir_ticket_order)random_below(&state.random, 2));
	l->workers = l->workers < hidden->tickets ? l->workers : hidden->tickets;
	hidden->dealt = random_below(&state.random, 2) ? l->workers : 0;
	if (l->pair->save_fixed)
		prepare_saves(l->pair, l, l->workers, hidden);
	l->parameters[l->pair->parameters] = hidden;
	start(l, l->workers, 1, 1);
	hidden->fresh = 0;
}

static void finish(const struct launch *l)
{
	while (!state.is_calm && !is_done(l)) {
		state.continuations++;
		start(l, l->workers, 1, 1);
	}
}

/* The rest of the last launch, which continues beside the program. */
static struct {
	struct launch launch;
	CUcontext context;
	pthread_t thread;
	bool runs;
	_Atomic bool is_done;
} beside;

static void *finish_beside(void *data)
{
	(void)data;
	MUST(cuCtxSetCurrent(beside.context));
	finish(&beside.launch);
	beside.is_done = true;
	return NULL;
}

static void wait_beside(void)
{
	if (beside.runs)
		pthread_join(beside.thread, NULL);
	beside.runs = false;
}

static void start_beside(const struct launch *l)
{
	beside.launch = *l;
	beside.launch.parameters[l->pair->parameters] = &beside.launch.hidden;
	MUST(cuCtxGetCurrent(&beside.context));
	beside.is_done = false;
	beside.runs = !pthread_create(&beside.thread, NULL, finish_beside, NULL);
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
	wait_beside();
	return REAL(cuStreamSynchronize)(stream);
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
	if (beside.runs && !beside.is_done)
		return CUDA_ERROR_NOT_READY;
	return REAL(cuStreamQuery)(stream);
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
			       unsigned grid_z, unsigned block_x, unsigned block_y,
			       unsigned block_z, unsigned shared, CUstream stream,
			       void **parameters, void **extra)
{
	struct launch l = {.pair = find(function),
			   .grid = {grid_x, grid_y, grid_z},
			   .block = {block_x, block_y, block_z},
			   .shared = shared,
			   .stream = stream};

	if (!l.pair || extra || l.pair->parameters >= PARAMETERS_MAX) {
		state.natives++;
		return REAL(cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x, block_y,
					    block_z, shared, stream, parameters, extra);
	}
	wait_beside();
	state.launches++;
	if (l.pair->parameters)
		memcpy(l.parameters, parameters, l.pair->parameters * sizeof(void *));
	if (state.form == WEIR_SLICED)
		run_sliced(&l);
	else
		run_persistent(&l);
	if (state.form != WEIR_SLICED && state.is_beside)
		start_beside(&l);
	else if (state.form != WEIR_SLICED)
		finish(&l);
	return CUDA_SUCCESS;
}
