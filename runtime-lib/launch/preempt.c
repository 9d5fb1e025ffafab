#include "launch/preempt.h"

#include "gates/gate.h"
#include "gates/priority.h"
#include "preempt/launch-queue.h"

#include "weir/log.h"

#include <string.h>
#include <sys/mman.h>

struct preempting preempting_table[CLIENTS_MAX];

#define SAVES_MAX (1ull << 30)
/* The driver allocates blocks of this size, and puts several smaller allocations into one: ours
 * would share a block with the program's, and move it. */
#define BLOCK        (2ull << 20)
#define REPORTS_SIZE (PREEMPT_SLOTS_MAX * FLIGHTS_MAX * sizeof(struct weir_report))

/* Packs the program's parameters in the kernel's layout. False: some are missing, or come in an
 * unknown way. */
static bool pack(uint8_t *packed, const struct launch_decision *decision,
		 const struct kernel_call *call)
{
	const struct rewritten *rewritten = decision->config->rewritten;
	const void *buffer;
	size_t size;

	if (!rewritten->n_params)
		return true;
	if (call->params) {
		for (size_t i = 0; i < rewritten->n_params; i++) {
			if (!call->params[i])
				return false;
			memcpy(packed + rewritten->params[i].offset, call->params[i],
			       rewritten->params[i].size);
		}
		return !call->extra;
	}
	if (!call_packed(call, &buffer, &size) || size > decision->config->hidden_at)
		return false;
	const struct weir_object_param *last = &rewritten->params[rewritten->n_params - 1];
	if (size < last->offset + last->size)
		return false;
	memcpy(packed, buffer, size);
	return true;
}

static CUresult copy_constants(const struct rewritten *rewritten, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < rewritten->n_constants && result == CUDA_SUCCESS; i++)
		result = real(cuMemcpyDtoDAsync_v2)(rewritten->constants[i].to,
						    rewritten->constants[i].from,
						    rewritten->constants[i].size, stream);
	return result;
}

/* The launch's attributes but for the one that lets it begin early. */
static void take_attributes(CUlaunchConfig *launch, CUlaunchAttribute *out)
{
	unsigned n = 0;

	for (unsigned i = 0; launch->attrs && i < launch->numAttrs && n < FORM_ATTRIBUTES_MAX; i++)
		if (launch->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			out[n++] = launch->attrs[i];
	launch->attrs = out;
	launch->numAttrs = n;
}

/* Launches @grid blocks with packed parameters, otherwise as the program asked for. */
static CUresult start(const struct kernel_call *call, const struct launch_decision *decision,
		      const unsigned grid[3], struct stream *stream, uint8_t *packed)
{
	const struct launch_config *config = decision->config;
	CUfunction function = config->rewritten->variants[config->form][config->build].function;
	const struct geometry *geometry = &call->geometry;
	size_t size = config->packed_size;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};

	CUlaunchAttribute attributes[FORM_ATTRIBUTES_MAX];
	CUlaunchConfig launch = call_config(call);
	CUresult result;

	take_attributes(&launch, attributes);
	launch.gridDimX = grid[0];
	launch.gridDimY = grid[1];
	launch.gridDimZ = grid[2];
	launch.hStream = stream->handle;
	if (priority_launch(stream->client, decision->priority, &launch, false, function, NULL,
			    extra, &result))
		return result;
	if (call->config)
		return real(cuLaunchKernelEx)(&launch, function, NULL, extra);
	return real(cuLaunchKernel)(function, grid[0], grid[1], grid[2], geometry->block[0],
				    geometry->block[1], geometry->block[2], geometry->shared,
				    stream->handle, NULL, extra);
}

/* The native launch that follows tells the program if something is wrong with its call. */
static bool refused(const struct launch_decision *decision, CUresult result)
{
	autotune_refused(&decision->tuned->tuner);
	log_limited(LOG_WARNING, 60, "the driver takes no launch in the form %s (error %d)",
		    form_name(decision->config->form), result);
	return false;
}

static void fill_symbols(uint8_t *packed, const struct launch_decision *decision,
			 size_t hidden_size)
{
	memcpy(packed + decision->config->hidden_at + hidden_size,
	       decision->config->rewritten->symbols,
	       decision->config->rewritten->n_symbols * sizeof(uint64_t));
}

static bool launch_sliced(struct stream *stream, const struct level_binding *binding,
			  const struct kernel_call *call, const struct launch_decision *decision,
			  CUresult *result)
{
	const struct launch_config *config = decision->config;
	const unsigned *grid = call->geometry.grid;
	uint8_t packed[PACKED_MAX] __attribute__((aligned(16)));
	struct weir_slice *slice = (void *)(packed + config->hidden_at);
	unsigned part[3] = {grid[0], grid[1], grid[2]};

	if (!pack(packed, decision, call))
		return false;
	*slice = (struct weir_slice){.grid = {grid[0], grid[1], grid[2]}};
	fill_symbols(packed, decision, sizeof(*slice));
	*result = copy_constants(decision->config->rewritten, stream->handle);
	if (*result != CUDA_SUCCESS)
		return refused(decision, *result);
	while (slice->first[config->axis] < grid[config->axis]) {
		uint32_t left = grid[config->axis] - slice->first[config->axis];
		bool first = !slice->first[config->axis];

		part[config->axis] = smaller(left, config->step);
		if (!first)
			gate_put(stream, binding, gate_kind(decision->yields, false));
		*result = start(call, decision, part, stream, packed);
		if (*result != CUDA_SUCCESS)
			return first ? refused(decision, *result) : true;
		slice->first[config->axis] += part[config->axis];
	}
	return true;
}

/* Is there room for the saves? If not, the worker is asked for it. */
static bool has_saves(struct stream *stream, struct preempt_slot *slot,
		      const struct launch_config *config)
{
	uint64_t need = config->hidden.save_stride * config->workers;

	if (need <= atomic_load(&slot->saves_size))
		return true;
	if (need > load_relaxed(&slot->saves_wanted)) {
		atomic_store(&slot->saves_wanted, need);
		atomic_store(&preempting_of(stream->client)->slots_wanted, 1);
	}
	return false;
}

bool preempt_is_ready(struct stream *stream, const struct sampled *of)
{
	const struct launch_config *config = tuning_first_config(stream->client, of);
	struct preempt_slot *slot = atomic_load(&stream->slot);

	if (!slot)
		preempt_want(stream);
	return config ? slot && has_saves(stream, slot, config) : tuning_first_is_settled(of);
}

static void fill_hidden(struct weir_persistent *hidden, struct preempt_slot *slot,
			const struct launch_config *config, const struct gate_words *words,
			uint32_t serial)
{
	*hidden = config->hidden;
	hidden->words = slot->words;
	hidden->demand = words->demand;
	hidden->hold = words->hold;
	hidden->serial = serial;
	hidden->report = slot->reports_gpu + serial % FLIGHTS_MAX * sizeof(struct weir_report);
	hidden->saves = hidden->save_stride ? atomic_load(&slot->saves) : 0;
	hidden->room = words->room;
}

/* The first launch of a chain. One that must leave some SMs from the beginning draws its first
 * tickets, which it would run on all SMs otherwise. */
static void begin_fresh(struct weir_persistent *hidden, const struct level_binding *binding)
{
	hidden->fresh = 1;
	if (hidden->room)
		hidden->quota = weir_quota(load_relaxed(&demand_page(binding->wait)->sms));
	if (hidden->quota)
		hidden->dealt = 0;
}

/* Continuations know the quota. */
static void begin_continuations(struct weir_persistent *hidden)
{
	hidden->fresh = 0;
	if (hidden->room)
		hidden->dealt = 0;
}

/* Nothing asks the last one to leave. */
static void begin_last(struct weir_persistent *hidden, const struct launch_config *config)
{
	hidden->demand = hidden->hold = hidden->room = 0;
	hidden->quota = 0;
	hidden->dealt = config->hidden.dealt;
}

/* How many continuations another launch in the slot can have. More than CHAIN_MAX are wanted for
 * one of unknown length, which comes once. */
static uint32_t affordable(const struct preempt_slot *slot, uint32_t wanted)
{
	uint32_t links = atomic_load(&slot->links), all = launch_queue_of(LINKS_MAX),
		 left = links < all ? all - links : 0;
	uint32_t most = wanted > CHAIN_MAX ? left / 4 * 3 : left / 2;

	return smaller(wanted, larger(most, LINKS_LEAST));
}

/* If the recording fails, the sample has no time between its events. */
static void mark(CUevent event, const struct stream *stream)
{
	if (event)
		real(cuEventRecord)(event, stream->handle);
}

static bool launch_chain(struct stream *stream, struct preempt_slot *slot,
			 const struct level_binding *binding, const struct kernel_call *call,
			 const struct launch_decision *decision, struct sample *sample,
			 CUresult *result)
{
	const struct launch_config *config = decision->config;
	enum gate_kind gate = gate_kind(decision->yields, decision->spatial);
	struct gate_words words = gate_words(binding, gate);
	uint32_t last = load_relaxed(&slot->last);
	uint32_t serial = last + 1, chain = affordable(slot, decision->chain);
	uint8_t packed[PACKED_MAX] __attribute__((aligned(16)));
	struct weir_persistent *hidden = (void *)(packed + config->hidden_at);

	if (!words.demand || last - atomic_load(&slot->seen) >= FLIGHTS_MAX ||
	    !has_saves(stream, slot, config) || !pack(packed, decision, call))
		return false;
	fill_hidden(hidden, slot, config, &words, serial);
	fill_symbols(packed, decision, sizeof(*hidden));

	const unsigned grid[3] = {config->workers, 1, 1};
	begin_fresh(hidden, binding);
	*result = copy_constants(config->rewritten, stream->handle);
	if (*result == CUDA_SUCCESS)
		*result = start(call, decision, grid, stream, packed);
	if (*result != CUDA_SUCCESS)
		return refused(decision, *result);

	begin_continuations(hidden);
	bool parts = sample && sample->parts;
	for (uint32_t left = chain; left-- && *result == CUDA_SUCCESS;) {
		struct sample *first = parts && left + 1 == chain ? sample : NULL;
		mark(first ? first->away : NULL, stream);
		/* The last gate serves the next launch as well. */
		gate_put(stream, binding, gate);
		mark(first ? first->back : NULL, stream);
		if (!left)
			begin_last(hidden, config);
		*result = start(call, decision, grid, stream, packed);
		mark(first ? first->done : NULL, stream);
	}
	if (*result != CUDA_SUCCESS) /* sample_end() gives it back */
		sample = NULL;
	if (sample) {
		sample->chain = chain;
		atomic_store(&sample->flight, SAMPLE_FLYING);
	}
	slot->flights[serial % FLIGHTS_MAX] =
		(struct flight){.tuned = decision->tuned,
				.sample = sample,
				.form = config->form,
				.chain = chain,
				.save = config->hidden.save_stride,
				.number = load_relaxed(&stream->begun)};
	atomic_fetch_add(&slot->links, chain);
	atomic_store(&slot->last, serial);
	return true;
}

bool preempt_launch(struct stream *stream, struct preempt_slot *slot,
		    const struct level_binding *binding, const struct kernel_call *call,
		    const struct launch_decision *decision, struct sample *sample, CUresult *result)
{
	bool launched;

	if (decision->config->form == WEIR_SLICED) {
		launched = launch_sliced(stream, binding, call, decision, result);
		if (sample)
			sample->sliced = launched;
	} else {
		launched = launch_chain(stream, slot, binding, call, decision, sample, result);
	}
	if (launched)
		add_relaxed(&preempting_of(stream->client)->launches[decision->config->form], 1);
	return launched;
}

/* Worker. */

/* @left: launches of the chain that left a part of the SMs; the upper half: those of them that came
 * back in another launch, which are no evictions, but need a continuation each. */
static void landed(struct client *client, const struct flight *flight, uint32_t evictions,
		   uint64_t left)
{
	struct preempting *preempting = preempting_of(client);
	uint32_t returns = (uint32_t)(left >> 32);

	if (flight->sample)
		atomic_store(&flight->sample->flight,
			     !evictions && !left ? SAMPLE_CLEAN
			     : evictions == 1 && !left && flight->sample->parts
				     ? SAMPLE_EVICTED_ONCE
				     : SAMPLE_EVICTED);
	preempting->evictions[flight->form] += evictions - smaller(returns, evictions);
	preempting->partial_leaves += (uint32_t)left;
	autotune_evicted(&flight->tuned->tuner, evictions, flight->chain);
}

/* @blocks: as reported with the flight, since the slot was made. */
static void count_blocks(struct client *client, struct preempt_slot *slot,
			 const struct flight *flight, uint64_t blocks)
{
	struct preempting *preempting = preempting_of(client);
	uint32_t saved = (uint32_t)blocks - (uint32_t)slot->blocks;
	uint32_t drained = (uint32_t)(blocks >> 32) - (uint32_t)(slot->blocks >> 32);

	/* The GPU writes both words of a report at once, but nothing guarantees it. */
	if (saved > INT32_MAX || drained > INT32_MAX)
		return;
	preempting->blocks_saved += saved;
	preempting->bytes_saved += saved * flight->save;
	preempting->blocks_drained += drained;
	slot->blocks = blocks;
}

/* What a report adds to the last one that said so; both halves as in struct weir_report. It is
 * stored when there is something to tell, so an older launch's may be there. */
static uint64_t count_partial(struct preempt_slot *slot, uint64_t partial)
{
	uint32_t launches = (uint32_t)partial - (uint32_t)slot->partial;
	uint32_t returns = (uint32_t)(partial >> 32) - (uint32_t)(slot->partial >> 32);

	if (!launches || launches > INT32_MAX || returns > launches)
		return 0;
	slot->partial = partial;
	return (uint64_t)returns << 32 | launches;
}

/* Takes finished launches, in order: if one is finished, so are those before it. True: some are
 * left. */
static bool look_at_slot(struct client *client, struct preempt_slot *slot)
{
	uint32_t last = atomic_load(&slot->last), seen = atomic_load(&slot->seen);

	while (seen != last) {
		uint32_t serial = seen + 1;
		const struct preempt_report *told = &slot->reports[serial % FLIGHTS_MAX];
		uint64_t report = atomic_load(&told->launch);

		/* What is there of an older launch has another serial. */
		if ((uint32_t)report != serial)
			break;
		const struct flight *flight = &slot->flights[serial % FLIGHTS_MAX];
		landed(client, flight, (uint32_t)(report >> 32) - slot->evictions,
		       count_partial(slot, atomic_load(&told->partial)));
		if (flight->save)
			count_blocks(client, slot, flight, atomic_load(&told->blocks));
		atomic_fetch_sub(&slot->links, flight->chain);
		slot->evictions = (uint32_t)(report >> 32);
		slot->landed = flight->number;
		seen = serial;
		atomic_store(&slot->seen, seen);
	}
	if (seen == last && atomic_load(&slot->orphan)) {
		atomic_store(&slot->orphan, 0);
		atomic_store(&slot->taken, 0);
	}
	return seen != last;
}

/* All resources ended with their context. */
static void renew(struct preempt_slots *slots)
{
	slots->state = SLOTS_NONE;
	slots->zeroing = NULL;
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		struct preempt_slot *slot = &slots->slot[i];
		slot->taken = slot->orphan = 0;
		slot->last = slot->seen = slot->links = slot->evictions = 0;
		slot->landed = slot->blocks = slot->partial = 0;
		slot->saves = slot->saves_size = slot->saves_wanted = slot->saves_refused = 0;
	}
}

static bool look_at_slots(struct client *client)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);
	bool flying = false;

	if (slots && atomic_exchange(&slots->stale, 0))
		renew(slots);
	for (size_t i = 0; slots && i < PREEMPT_SLOTS_MAX; i++) {
		if (atomic_load(&slots->slot[i].taken) && look_at_slot(client, &slots->slot[i]))
			flying = true;
	}
	return flying;
}

/* If the newest launch is finished, all are. */
bool preempt_done(struct stream *stream)
{
	const struct preempt_slot *slot = atomic_load(&stream->slot);

	return slot && slot->landed && slot->landed == atomic_load(&stream->begun);
}

void preempt_stream_gone(struct stream *stream)
{
	struct preempt_slot *slot = atomic_exchange(&stream->slot, NULL);

	if (slot)
		atomic_store(&slot->orphan, 1);
}

static uint64_t whole_blocks(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

/* Device words, cleared in a stream of their own, and host memory for reports. */
static enum slots_state make(struct preempt_slots *slots)
{
	if (!slots->reports) {
		void *memory = mmap(NULL, REPORTS_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return SLOTS_REFUSED;
		slots->reports = memory;
	}
	memset((void *)slots->reports, 0, REPORTS_SIZE);
	size_t words = PREEMPT_SLOTS_MAX * sizeof(struct weir_words);
	if (real(cuMemHostRegister_v2)((void *)slots->reports, REPORTS_SIZE,
				       CU_MEMHOSTREGISTER_DEVICEMAP |
					       CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS ||
	    real(cuMemHostGetDevicePointer_v2)(&slots->reports_gpu, (void *)slots->reports, 0) !=
		    CUDA_SUCCESS ||
	    real(cuMemAlloc_v2)(&slots->words, whole_blocks(words)) != CUDA_SUCCESS ||
	    real(cuStreamCreate)(&slots->zeroing, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
		return SLOTS_REFUSED;
	if (real(cuMemsetD8Async)(slots->words, 0, words, slots->zeroing) == CUDA_SUCCESS)
		return SLOTS_ZEROING;
	real(cuStreamDestroy_v2)(take(slots->zeroing));
	return SLOTS_REFUSED;
}

static void begin(struct preempt_slots *slots)
{
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		struct preempt_slot *slot = &slots->slot[i];
		slot->words = slots->words + i * sizeof(struct weir_words);
		slot->reports = slots->reports + i * FLIGHTS_MAX;
		slot->reports_gpu =
			slots->reports_gpu + i * FLIGHTS_MAX * sizeof(struct weir_report);
	}
}

static void advance(struct preempt_slots *slots)
{
	CUresult result;

	switch (slots->state) {
	case SLOTS_NONE:
		slots->state = make(slots);
		if (slots->state == SLOTS_REFUSED)
			log_warning("no memory for kernels that can leave: all run natively");
		break;
	case SLOTS_ZEROING:
		result = real(cuStreamQuery)(slots->zeroing);
		if (result == CUDA_ERROR_NOT_READY)
			break;
		real(cuStreamDestroy_v2)(take(slots->zeroing));
		begin(slots);
		slots->state = result == CUDA_SUCCESS ? SLOTS_READY : SLOTS_REFUSED;
		break;
	case SLOTS_READY:
	case SLOTS_REFUSED:
		break;
	}
}

static struct preempt_slot *free_slot(struct preempt_slots *slots)
{
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		if (!atomic_load(&slots->slot[i].taken))
			return &slots->slot[i];
	}
	log_limited(LOG_INFO, 3600, "more than %d streams with long kernels: some stay native",
		    PREEMPT_SLOTS_MAX);
	return NULL;
}

static void give_slots(struct client *client, struct preempt_slots *slots)
{
	stream_for_each (s, client) {
		if (!atomic_exchange(&s->slot_wanted, 0) || atomic_load(&s->slot))
			continue;
		struct preempt_slot *slot = free_slot(slots);
		if (!slot)
			return;
		slot->landed = 0;
		atomic_store(&slot->taken, 1);
		atomic_store(&s->slot, slot);
		if (atomic_load(&s->key) <= STREAM_GOES) /* the stream ended meanwhile */
			preempt_stream_gone(s);
	}
}

/* Makes a larger area. The old one stays, because launches in flight may use it, and freeing it
 * would wait for the GPU. So the size at least doubles. */
static void grow_saves(struct preempt_slot *slot)
{
	uint64_t wanted = atomic_load(&slot->saves_wanted), size = atomic_load(&slot->saves_size);
	CUdeviceptr area;

	if (wanted <= size || wanted == slot->saves_refused)
		return;
	wanted = whole_blocks(larger(wanted, 2 * size));
	if (wanted > SAVES_MAX || real(cuMemAlloc_v2)(&area, wanted) != CUDA_SUCCESS) {
		slot->saves_refused = atomic_load(&slot->saves_wanted);
		log_limited(LOG_WARNING, 3600,
			    "no %llu MB to save running kernels: they stay native",
			    (unsigned long long)wanted >> 20);
		return;
	}
	atomic_store(&slot->saves, area);
	atomic_store(&slot->saves_size, wanted);
}

static bool pending(const struct client *client)
{
	const struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	return atomic_load(&preempting_of(client)->slots_wanted) ||
	       (slots && slots->state == SLOTS_ZEROING);
}

void preempt_drive(struct client *client, struct tick *tick)
{
	(void)tick;
	if (!pending(client))
		return;
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	if (!slots) {
		slots = calloc(1, sizeof(*slots));
		if (!slots)
			return;
		atomic_store(&preempting_of(client)->slots, slots);
	}
	advance(slots);
	if (slots->state == SLOTS_ZEROING)
		return;
	atomic_store(&preempting_of(client)->slots_wanted, 0);
	if (slots->state != SLOTS_READY)
		return;
	give_slots(client, slots);
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		if (atomic_load(&slots->slot[i].taken))
			grow_saves(&slots->slot[i]);
	}
}

void preempt_forget(struct client *client)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	atomic_store(&preempting_of(client)->slots_wanted, 0);
	if (slots)
		atomic_store(&slots->stale, 1);
}

void preempt_look(struct client *client, struct tick *tick)
{
	tick->flying = look_at_slots(client); /* first: it may renew what pending() reads */
	tick->forms |= pending(client);
}

/* The slots stay: a thread in the middle of a launch may use them. */
void preempt_init(struct client *client)
{
	struct preempting *preempting = preempting_of(client);

	for (size_t i = 0; i < WEIR_STATUS_FORMS; i++)
		preempting->launches[i] = preempting->evictions[i] = 0;
	preempting->blocks_saved = preempting->blocks_drained = preempting->bytes_saved = 0;
	preempting->partial_leaves = 0;
}
