#include "preempt/tuning.h"

#include "client/level-binding.h"
#include "client/request.h"
#include "gates/gate.h"
#include "gates/waiting.h"
#include "preempt/forms.h"
#include "preempt/launch-queue.h"
#include "preempt/sm-parts.h"

#include "weir/drain.h"
#include "weir/fnv.h"
#include "weir/log.h"

#include <string.h>

static_assert(GATES_APART_NS == GATE_INTERVAL_ALONE, "one largest distance of gates");

static struct autotune_settings settings;
static struct tuned_kernel kernels[TUNED_KERNELS_MAX];
static _Atomic size_t n_kernels;         /* ever used */
static _Atomic int is_open[CLIENTS_MAX]; /* kernels of this client may not be settled */

void tuning_code_gone(const struct function *function)
{
	for (size_t i = 0; i < n_kernels; i++) {
		if (atomic_load(&kernels[i].function) == function)
			atomic_store(&kernels[i].key, 0);
	}
}

void tuning_init(void)
{
	const char *latency = getenv("WEIR_PREEMPT_LATENCY_US"), *form = getenv("WEIR_FORM"),
		   *chunk = getenv("WEIR_CHUNK");

	settings.latency_given = latency != NULL;
	settings.latency = latency ? strtoull(latency, NULL, 10) * 1000 : LATENCY_NS;
	settings.chunk = chunk ? (uint32_t)strtoul(chunk, NULL, 10) : 0;
	launch_queue_settings();
	settings.chain_unknown = launch_queue_of(CHAIN_UNKNOWN);
	settings.forced = 0;
	while (autotune_forces(&settings) &&
	       !(form && strcmp(form, form_name(settings.forced)) == 0))
		settings.forced++;
	if (form && !autotune_forces(&settings))
		log_warning("WEIR_FORM=%s is no form", form);
}

/* @now: 0 on the launch path. */
static struct autotune_situation situation(const struct client *client, uint64_t now)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	const struct waiters *waiters = waiters_of(client);

	return (struct autotune_situation){
		.now = now,
		.waiting = (enum waiting)load_relaxed(&waiters->waiting),
		.lowest_level = binding && !binding->level,
		.max_blocking_time = load_relaxed(&waiters->max_blocking_time),
	};
}

struct launch_decision tuning_decide(struct tuned_kernel *tuned, const struct client *client,
				     uint64_t key, const struct autotune_launch *launch)
{
	struct launch_decision decision = {0};

	if (!tuned || load_acquire(&tuned->key) != key || load_relaxed(&tuned->client) != client)
		return decision;
	struct autotune_situation at = situation(client, 0);
	decision = autotune_decide(&tuned->tuner, &at, launch);
	decision.tuned = tuned;
	/* The program may have changed the kernel in a way that its forms cannot follow. */
	const struct function *function = load_relaxed(&tuned->function);
	if (decision.config && !function_has(function, decision.config->rewritten)) {
		decision.config = NULL;
		decision.candidate = 0;
	}
	return decision;
}

/* Worker. */

static struct tuned_kernel *take_record(void)
{
	for (size_t i = 0; i < n_kernels; i++) {
		if (!atomic_load(&kernels[i].key))
			return &kernels[i];
	}
	if (n_kernels < TUNED_KERNELS_MAX)
		return &kernels[n_kernels++];
	log_limited(LOG_INFO, 3600, "more than %d long kernels: the others stay native",
		    TUNED_KERNELS_MAX);
	return NULL;
}

/* The sample may be of a launch before the record was made. */
static struct tuned_kernel *tuned_of(const struct sampled *of)
{
	struct tuned_kernel *tuned = of->tuned ? of->tuned : atomic_load(&of->kernel->tuned);

	return tuned && atomic_load(&tuned->key) == of->key ? tuned : NULL;
}

/* A new record, without its autotuner. NULL: there are too many. */
static struct tuned_kernel *make(struct client *client, const struct sampled *of)
{
	struct tuned_kernel *tuned = take_record();

	if (!tuned)
		return NULL;
	tuned->client = client;
	tuned->function = NULL;
	tuned->geometry = of->geometry;
	tuned->unloads = of->unloads;
	tuned->number = 0;
	tuned->taught = (struct profile_taught){0};
	return tuned;
}

/* Its autotuner is ready, too. */
static struct tuned_kernel *publish(struct tuned_kernel *tuned, const struct sampled *of)
{
	atomic_store(&tuned->key, of->key);
	atomic_store(&is_open[tuned->client->index], 1);
	if (atomic_load(&of->kernel->key) == of->key)
		atomic_store(&of->kernel->tuned, tuned);
	return tuned_of(of);
}

static bool fits(const struct sampled *of)
{
	const unsigned *grid = of->geometry.grid;

	return of->formable && (uint64_t)grid[0] * grid[1] * grid[2] <= INT32_MAX;
}

/* Makes a record if the kernel needs tuning. A time that others may have made longer counts no more
 * than the kernel's mean, or a kernel that is short alone would get a form among others. */
static struct tuned_kernel *consider(struct client *client, const struct sampled *of, uint64_t ns,
				     bool crowded, uint64_t now)
{
	uint64_t mean = kernel_mean(of->kernel);
	struct autotune_situation at = situation(client, now);

	ns = crowded && mean ? smaller(mean, ns) : ns;
	if (!fits(of) || !autotune_is_long(&settings, &at, ns))
		return NULL;
	struct tuned_kernel *tuned = make(client, of);
	if (!tuned)
		return NULL;
	autotune_init(&tuned->tuner, &settings, of->geometry.grid, ns, now);
	return publish(tuned, of);
}

void tuning_first(struct client *client, const struct sampled *of)
{
	struct tuned_kernel *tuned = fits(of) && !tuned_of(of) ? make(client, of) : NULL;

	if (!tuned)
		return;
	autotune_init_unknown(&tuned->tuner, &settings, of->geometry.grid, client_now());
	publish(tuned, of);
}

const struct launch_config *tuning_first_config(const struct client *client,
						const struct sampled *of)
{
	struct tuned_kernel *tuned = load_acquire(&of->kernel->tuned);

	return tuning_decide(tuned, client, of->key, &(struct autotune_launch){0}).config;
}

bool tuning_first_is_settled(const struct sampled *of)
{
	const struct tuned_kernel *tuned = tuned_of(of);

	return tuned && atomic_load(&tuned->tuner.state) == AUTOTUNE_SETTLED;
}

bool tuning_is_unknown(const struct sampled *of)
{
	const struct tuned_kernel *tuned = tuned_of(of);

	return tuned && atomic_load(&tuned->tuner.assumed);
}

void tuning_runs(struct client *client, const struct sample *sample, uint64_t ns, bool crowded)
{
	struct tuned_kernel *tuned = tuned_of(&sample->of);
	uint64_t now = client_now();

	if (tuned)
		autotune_runs(&tuned->tuner, ns, now);
	else
		consider(client, &sample->of, ns, crowded, now);
}

static struct profile_subject subject_of(struct tuned_kernel *tuned)
{
	return (struct profile_subject){.function = atomic_load(&tuned->function),
					.geometry = &tuned->geometry,
					.key = atomic_load(&tuned->key),
					.tuner = &tuned->tuner};
}

static void teach(const struct client *client, struct tuned_kernel *tuned)
{
	struct profile_subject subject = subject_of(tuned);

	profile_teach(client, &subject, &tuned->taught);
}

void tuning_learn(struct client *client, const struct sample *sample, uint64_t ns, bool crowded)
{
	const struct sampled *of = &sample->of;
	uint64_t now = client_now();
	struct tuned_kernel *tuned = tuned_of(of);

	if (!tuned)
		tuned = consider(client, of, ns, crowded, now);
	if (!tuned)
		return;
	struct autotune_situation at = situation(client, now);
	autotune_sample(&tuned->tuner, &at,
			&(struct autotune_sample){.candidate = of->candidate,
						  .ns = ns,
						  .evicted = sample_evicted(sample),
						  .disturbed = sample->disturbed,
						  .crowded = crowded});
	if (tuned->tuner.state != AUTOTUNE_SETTLED)
		atomic_store(&is_open[client->index], 1);
	else
		teach(client, tuned);
}

static bool is_of(const struct tuned_kernel *tuned, const struct client *client)
{
	return atomic_load(&tuned->key) && tuned->client == client;
}

/* A kernel that nobody has launched yet can do with the form that leaves soonest. */
static const struct rewritten *code_of(const struct tuned_kernel *tuned,
				       const struct function *function)
{
	const struct rewritten *rewritten = atomic_load(&function->rewritten);

	return rewritten || !atomic_load(&tuned->tuner.assumed) ? rewritten
								: atomic_load(&function->soonest);
}

/* What can be done now: nothing while the compile service has the kernel. */
static enum autotune_need need_of(const struct tuned_kernel *tuned, const struct client *client,
				  const struct autotune_situation *at)
{
	const struct function *function = atomic_load(&tuned->function);
	enum autotune_need need =
		is_of(tuned, client) ? autotune_need(&tuned->tuner, at) : AUTOTUNE_NEEDS_NOTHING;

	if (need == AUTOTUNE_NEEDS_FORMS && function && !code_of(tuned, function)) {
		int state = atomic_load(&function->state);
		if (state == FUNCTION_WANTED || state == FUNCTION_REQUESTED)
			need = AUTOTUNE_NEEDS_NOTHING;
	}
	return need;
}

bool tuning_pending(const struct client *client)
{
	struct autotune_situation at = situation(client, 0);
	bool more = false;

	for (size_t i = 0; atomic_load(&is_open[client->index]) && i < n_kernels; i++) {
		const struct tuned_kernel *tuned = &kernels[i];
		if (need_of(tuned, client, &at) != AUTOTUNE_NEEDS_NOTHING)
			return true;
		more |= is_of(tuned, client) &&
			(tuned->tuner.state != AUTOTUNE_SETTLED || tuned->tuner.postponed);
	}
	/* Only this thread makes records, so none came meanwhile. */
	atomic_store(&is_open[client->index], more);
	return false;
}

uint64_t tuning_count(const struct client *client)
{
	struct autotune_situation at = situation(client, client_now());
	uint64_t n = 0;

	for (size_t i = 0; atomic_load(&is_open[client->index]) && i < n_kernels; i++)
		n += is_of(&kernels[i], client) && autotune_is_active(&kernels[i].tuner, &at);
	return n;
}

/* Blocks of a kernel that are on the GPU at once; 0: not known. */
static uint32_t resident(const struct geometry *geometry, const void *function, int sms)
{
	const unsigned *block = geometry->block;
	int blocks = 0;

	if (real(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, (CUfunction)function,
							      (int)(block[0] * block[1] * block[2]),
							      geometry->shared) != CUDA_SUCCESS)
		return 0;
	return (uint32_t)(blocks * sms);
}

/* Asks the driver once: it reads clocks from the GPU, which takes 0.7 ms. */
static uint32_t drain_cycles(CUdevice device, uint64_t bytes)
{
	static struct {
		bool is_known;
		CUdevice device;
		int clock, memory, bus;
	} speeds;

	if (!speeds.is_known || speeds.device != device) {
		speeds.clock = driver_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
		speeds.memory = driver_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
		speeds.bus = driver_attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
		speeds.device = device;
		speeds.is_known = true;
	}
	return weir_drain_cycles(bytes, speeds.clock, speeds.memory, speeds.bus);
}

static struct build_facts build_of(const struct geometry *geometry, enum weir_form form,
				   const struct variant *variant, CUdevice device, int sms)
{
	bool saves = form == WEIR_RESUMABLE && variant->save_fixed;
	uint64_t threads = (uint64_t)geometry->block[0] * geometry->block[1] * geometry->block[2];
	uint64_t save = variant->save_fixed + variant->save_per_thread * threads + geometry->shared;

	struct build_facts facts = {
		.resident = variant->function ? resident(geometry, variant->function, sms) : 0,
		.save_stride = saves ? (save + 255) / 256 * 256 : 0,
	};
	if (facts.resident)
		sm_parts(device, variant->function, geometry, facts.resident / (uint32_t)sms,
			 facts.parts);
	if (saves)
		facts.drain = drain_cycles(device, facts.save_stride * facts.resident);
	return facts;
}

/* Where the hidden parameter begins: behind the program's own, aligned to 8. */
static size_t hidden_at(const struct rewritten *rewritten)
{
	size_t end = 0;

	for (size_t i = 0; i < rewritten->n_params; i++) {
		size_t behind = (size_t)rewritten->params[i].offset + rewritten->params[i].size;
		end = larger(behind, end);
	}
	return (end + 7) / 8 * 8;
}

static struct kernel_facts facts_of(const struct tuned_kernel *tuned,
				    const struct rewritten *rewritten)
{
	size_t hidden = hidden_at(rewritten), symbols = rewritten->n_symbols * sizeof(uint64_t);
	const struct geometry *geometry = &tuned->geometry;
	CUdevice device = atomic_load(&tuned->client)->device;
	int sms = driver_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	struct kernel_facts facts = {.sms = (uint32_t)sms,
				     .resident = resident(geometry, geometry->function, sms),
				     .is_straight = rewritten->is_straight,
				     .kind = (uint32_t)atomic_load(&tuned->key),
				     .rewritten = rewritten,
				     .hidden_at = (uint32_t)hidden,
				     .symbols_size = (uint32_t)symbols};
	for (enum weir_form form = WEIR_SLICED; form < WEIR_FORM_COUNT; form++) {
		size_t size = form == WEIR_SLICED ? sizeof(struct weir_slice)
						  : sizeof(struct weir_persistent);
		for (size_t i = 0; hidden + size + symbols <= PACKED_MAX && i < BUILDS_MAX; i++)
			facts.builds[form][i] = build_of(
				geometry, form, &rewritten->variants[form][i], device, sms);
	}
	return facts;
}

/* Asks the compile service. */
static void ask(struct tuned_kernel *tuned)
{
	/* Code was unloaded since the launch, so the handle may be stale. */
	if (tuned->unloads != kernel_unloads()) {
		atomic_store(&tuned->key, 0);
		return;
	}
	CUfunction handle = (CUfunction)tuned->geometry.function;
	struct function *function = function_find(tuned->client, handle);
	const char *name = NULL;

	if (function && function_is_being_made(function))
		return; /* at the next look */
	if (real(cuFuncGetName)(&name, handle) == CUDA_SUCCESS && name)
		tuned->tuner.name = name;
	atomic_store(&tuned->function, function);
	if (function)
		forms_want(function);
	else
		autotune_no_forms(&tuned->tuner, "too many kernels");
}

/* The agent's digest of a kernel is the same in all processes. Nobody frees the profiles here: a
 * thread that unloads the code waits until the worker has left the driver. */
static uint64_t number_of(const struct function *function, const struct geometry *geometry)
{
	const struct kernel_profiles *profiles = atomic_load(&function->profiles);

	if (!profiles)
		return 0;
	uint64_t number = fnv_bytes(FNV_BASIS, profiles->kernel, sizeof(profiles->kernel));
	number = fnv_bytes(number, geometry->grid, sizeof(geometry->grid));
	number = fnv_bytes(number, geometry->block, sizeof(geometry->block));
	number = fnv_bytes(number, &geometry->shared, sizeof(geometry->shared));
	return number ? number : 1;
}

const struct tuned_kernel *tuning_of(const struct launch_config *config)
{
	return &kernels[(size_t)((const char *)config - (const char *)kernels) /
			sizeof(kernels[0])];
}

static void give_forms(struct tuned_kernel *tuned, const struct autotune_situation *at)
{
	struct function *function = atomic_load(&tuned->function);
	const struct rewritten *rewritten = code_of(tuned, function);

	if (function_is_hopeless(function) || !rewritten) {
		autotune_no_forms(&tuned->tuner, "it is not rewritten");
		return;
	}
	tuned->number = number_of(function, &tuned->geometry);
	struct kernel_facts facts = facts_of(tuned, rewritten);
	struct profile_subject subject = subject_of(tuned);
	if (!profile_take(&subject, at, &facts))
		autotune_forms(&tuned->tuner, at, &facts);
}

void tuning_work(struct client *client)
{
	for (size_t i = 0; i < n_kernels; i++) {
		struct tuned_kernel *tuned = &kernels[i];
		struct autotune_situation at = situation(client, client_now());
		enum autotune_need need = need_of(tuned, client, &at);
		if (need == AUTOTUNE_NEEDS_RESUME)
			autotune_resume(&tuned->tuner, &at);
		if (need == AUTOTUNE_NEEDS_FORMS && !atomic_load(&tuned->function)) {
			ask(tuned);
			need = need_of(tuned, client, &at);
		}
		/* They may be there already, for another geometry. */
		if (need == AUTOTUNE_NEEDS_FORMS && atomic_load(&tuned->function))
			give_forms(tuned, &at);
	}
}

void tuning_forget(struct client *client)
{
	for (size_t i = 0; i < n_kernels; i++) {
		if (kernels[i].client == client)
			atomic_store(&kernels[i].key, 0);
	}
}

const struct tuned_kernel *tuning_at(size_t index)
{
	return index < n_kernels ? &kernels[index] : NULL;
}
