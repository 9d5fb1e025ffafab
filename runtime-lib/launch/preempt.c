#include "launch/preempt.h"

#include "gates/gate.h"
#include "gates/priority.h"
#include "launch/workers.h"
#include "preempt/launch-queue.h"

#include "weir/log.h"

#include <string.h>

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

/* Of the launch that was begun last. */
static void note_gates_inside(struct stream *stream)
{
	uint64_t number = atomic_load(&stream->begun);

	if (number != atomic_load(&stream->gated_inside) + 1)
		atomic_store(&stream->gated_since, number);
	atomic_store(&stream->gated_inside, number);
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
		else if (left > config->step)
			note_gates_inside(stream);
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
	/* In this order: the worker stores the form, and then that it is settled. */
	bool settled = tuning_first_is_settled(of);
	const struct launch_config *config = tuning_first_config(stream->client, of);
	struct preempt_slot *slot = atomic_load(&stream->slot);

	if (!slot)
		preempt_want(stream);
	return config ? slot && has_saves(stream, slot, config) : settled;
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

/* @workers: of the first launch and all continuations. */
static void add_poller(struct weir_persistent *hidden, uint32_t workers)
{
	hidden->poller = hidden->room && weir_affords_poller(hidden, workers);
	hidden->dealt -= hidden->poller;
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
static void begin_last(struct weir_persistent *hidden, uint32_t workers)
{
	hidden->demand = hidden->hold = hidden->room = 0;
	hidden->quota = hidden->poller = 0;
	hidden->dealt = workers;
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

/* What all launches of a chain have in common. */
struct chain {
	struct stream *stream;
	const struct level_binding *binding;
	const struct kernel_call *call;
	const struct launch_decision *decision;
	enum gate_kind gate;
	uint32_t links; /* continuations */
	unsigned grid[3];
	uint8_t *packed;
	struct weir_persistent *hidden; /* in it */
};

static CUresult start_link(const struct chain *chain)
{
	return start(chain->call, chain->decision, chain->grid, chain->stream, chain->packed);
}

/* @parts: is told when the first of them begins and ends; NULL: nobody. */
static CUresult put_continuations(const struct chain *chain, const struct sample *parts)
{
	CUresult result = CUDA_SUCCESS;

	begin_continuations(chain->hidden);
	for (uint32_t left = chain->links; left-- && result == CUDA_SUCCESS; parts = NULL) {
		mark(parts ? parts->away : NULL, chain->stream);
		/* The last gate serves the next launch as well. */
		gate_put(chain->stream, chain->binding, chain->gate);
		mark(parts ? parts->back : NULL, chain->stream);
		if (!left)
			begin_last(chain->hidden, chain->grid[0]);
		result = start_link(chain);
		mark(parts ? parts->done : NULL, chain->stream);
	}
	return result;
}

/* The worker looks for its report from now on. @sample: NULL: none. */
static void note_flight(struct preempt_slot *slot, const struct chain *chain, uint32_t serial,
			struct sample *sample)
{
	const struct launch_config *config = chain->decision->config;

	if (sample) {
		sample->chain = chain->links;
		atomic_store(&sample->flight, SAMPLE_FLYING);
	}
	slot->flights[serial % FLIGHTS_MAX] =
		(struct flight){.tuned = chain->decision->tuned,
				.sample = sample,
				.form = config->form,
				.chain = chain->links,
				.save = config->hidden.save_stride,
				.number = load_relaxed(&chain->stream->begun)};
	atomic_fetch_add(&slot->links, chain->links);
	atomic_store(&slot->last, serial);
}

static bool launch_chain(struct stream *stream, struct preempt_slot *slot,
			 const struct level_binding *binding, const struct kernel_call *call,
			 const struct launch_decision *decision, struct sample *sample,
			 CUresult *result)
{
	const struct launch_config *config = decision->config;
	enum gate_kind gate = gate_kind(decision->yields, decision->spatial);
	struct gate_words words = gate_words(binding, gate);
	uint32_t last = load_relaxed(&slot->last), serial = last + 1;
	uint8_t packed[PACKED_MAX] __attribute__((aligned(16)));
	struct weir_persistent *hidden = (void *)(packed + config->hidden_at);

	if (!words.demand || last - atomic_load(&slot->seen) >= FLIGHTS_MAX ||
	    !has_saves(stream, slot, config) || !pack(packed, decision, call))
		return false;
	fill_hidden(hidden, slot, config, &words, serial);
	fill_symbols(packed, decision, sizeof(*hidden));
	const struct chain chain = {
		stream,
		binding,
		call,
		decision,
		gate,
		affordable(slot, decision->chain),
		{workers_of(binding, stream->client, config, hidden), 1, 1},
		packed,
		hidden,
	};

	if (sample)
		sample->bounded = chain.grid[0] < config->workers;
	add_poller(hidden, chain.grid[0]);
	begin_fresh(hidden, binding);
	*result = copy_constants(config->rewritten, stream->handle);
	if (*result == CUDA_SUCCESS)
		*result = start_link(&chain);
	if (*result != CUDA_SUCCESS)
		return refused(decision, *result);
	*result = put_continuations(&chain, sample && sample->parts ? sample : NULL);
	/* If it failed, sample_end() gives the sample back. */
	note_flight(slot, &chain, serial, *result == CUDA_SUCCESS ? sample : NULL);
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
		if (launched)
			store_relaxed(&preempting_of(stream->client)->latest, decision->config);
	}
	if (launched)
		add_relaxed(&preempting_of(stream->client)->launches[decision->config->form], 1);
	return launched;
}
