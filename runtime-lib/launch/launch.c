/* The launch path: hooks of all functions that start kernels. launch_begin() and launch_end() stand
 * around the driver's call. Once the stream is known neither of them allocates, locks, or makes a
 * system call. Between them a plain launch may be made in a form that can leave (launch_formed()).
 */
#include "client/stream-level.h"
#include "gates/demand.h"
#include "gates/expect.h"
#include "gates/gate.h"
#include "gates/need-choice.h"
#include "gates/priority.h"
#include "gates/start.h"
#include "gates/waiting.h"
#include "launch/graph.h"
#include "launch/kind.h"
#include "launch/learn.h"
#include "launch/preempt.h"
#include "launch/uncounted.h"
#include "launch/workers.h"
#include "measure/kernel.h"
#include "measure/predict.h"
#include "measure/sample.h"
#include "preempt/first-launch.h"
#include "preempt/tuning.h"

struct launch {
	struct stream *stream; /* NULL: not governed, or captured */
	const struct level_binding *binding;
	struct preempt_slot *slot;       /* locked until the end; NULL: none */
	struct launch_decision decision; /* how a kernel is launched */
	struct sample *sample;           /* NULL: none */
	uint64_t predicted;              /* ns; 0: not known */
	bool ordered;                    /* it can have a priority by its length */
	enum gate_kind gate;             /* what it waits for */
};

/* The assumed time of an unknown kernel inside a graph, where it cannot be sampled. */
#define CAPTURED_UNKNOWN (20 * NS_PER_US) /* ns */

static void launch_captured(struct stream *stream, const struct level_binding *binding,
			    uint64_t predicted, bool gate)
{
	if (binding->wait && gate)
		gate_capture(stream, binding);
	gate_account(stream, predicted ? predicted : CAPTURED_UNKNOWN);
}

static bool can_do_with_some(const struct launch *launch, const struct kernel_call *call,
			     enum launch_kind kind)
{
	return launch_sms(kind, &call->geometry) == SMS_COUNTED && launch->binding->level &&
	       sms_are_few(launch->stream->client, &call->geometry);
}

kept_apart static struct sample *take_sample(const struct launch *launch,
					     struct kernel_time *kernel, uint64_t key,
					     const struct kernel_call *call, enum launch_kind kind,
					     uint64_t started)
{
	struct stream *stream = launch->stream;
	struct sample *sample = launch->sample;

	if (!sample)
		sample = sample_begin(sampler_of(stream->client), stream->handle);
	if (!sample)
		return NULL;
	sample_describe(
		sample,
		&(struct sampled){
			.kernel = kernel,
			.key = key,
			.geometry = call->geometry,
			.unloads = kernel_unloads(),
			.formable = launch_may_have_form(kind, launch->binding),
			.predicted = launch->predicted,
			.started = started,
			.held = gate_is_closed(stream->client, launch->binding, launch->gate),
			.beside = binding_flag(launch->binding, WEIR_CONTROL_LEAVES),
			.arguments = predict_arguments(call),
			.tuned = launch->decision.tuned,
			.candidate = launch->decision.candidate,
			.few = can_do_with_some(launch, call, kind),
			.way = (int)sms_way(stream->client)});
	return sample;
}

/* In which form the kernel runs. A kernel that ends about as soon as a gate would stop it needs
 * none. While nobody waits for more than a quantum, only the gates of a single client count: in a
 * form the kernel would end behind blocks that the next client has begun. */
kept_apart static struct launch_decision decide(struct tuned_kernel *tuned,
						const struct client *client,
						const struct level_binding *binding, uint64_t key,
						uint64_t predicted)
{
	uint64_t interval = load_relaxed(&gating_of(client)->interval);
	uint64_t native = autotune_native_time(&tuned->tuner, predicted);
	const struct waiters *waiters = waiters_of(client);
	bool spatial = gate_is_spatial(binding), places = load_relaxed(&waiters->places);
	bool above = binding_is_below(binding) || load_relaxed(&waiters->below_lately);

	struct launch_decision decision =
		tuning_decide(tuned, client, key,
			      &(struct autotune_launch){
				      .native = native,
				      .short_alone = gate_interval(binding, false),
				      .short_waited = interval > GATE_INTERVAL_CONTENDED
							      ? interval
							      : GATE_INTERVAL_CONTENDED,
				      .overtaken = native < PRIORITY_LONG_NS &&
						   load_relaxed(&launch_order_of(client)->yields),
				      .places = spatial && places,
				      .above = above,
				      .workers = workers_bound(binding, client)});
	/* While nobody asks, a look at the quota before each ticket would cost a few per cent.
	 * Nor does it pay for short work: that needs the SMs for less time than it takes to bring
	 * workers back to them. */
	bool leaves_some = decision.config && decision.config->spatial && !places &&
			   load_relaxed(&waiters->waiting) == WAITING_URGENT;
	decision.spatial = spatial && (leaves_some || decision.places);
	return decision;
}

/* Reads the binding again after `begun` has grown: a change of level waits for launches that may
 * use the former one (level-change.c). NULL there: the client is gone, the former one will do. */
static const struct level_binding *binding_now(const struct client *client,
					       const struct level_binding *binding)
{
	const struct level_binding *now = atomic_load(&client->binding);

	return now ? now : binding;
}

/* Waits for forms of a kernel that nobody knows. Returns its predicted time, which may have come
 * with them. */
kept_apart static uint64_t await_forms(struct stream *stream, const struct kernel_call *call,
				       struct kernel_time *kernel, uint64_t key)
{
	struct sampled of = {.kernel = kernel,
			     .key = key,
			     .geometry = call->geometry,
			     .unloads = kernel_unloads(),
			     .formable = true};

	first_launch_await(stream, &of, preempt_is_ready);
	return predict(kernel, call);
}

/* A kernel that is to be launched, and what is known of it. */
struct work {
	const struct kernel_call *call;
	enum launch_kind kind;
	struct kernel_time *kernel;
	uint64_t key;
};

/* True: the launch has the priority of its level. */
static inline bool goes_ahead(const struct stream *stream, const struct work *work)
{
	const CUlaunchConfig *config = work->call->config;

	return load_relaxed(&launch_order_of(stream->client)->priorities) &&
	       work->kind != LAUNCH_GRAPH && !(config && priority_stays(config));
}

/* Counts the launch as begun and shows demand for it. True: nothing else is outstanding in the
 * stream. */
static always_inlined bool enter(struct launch *launch, struct stream *stream,
				 const struct level_binding *binding, const struct work *work)
{
	launch->stream = stream;
	launch->slot = load_acquire(&stream->slot);
	if (launch->slot)
		preempt_slot_lock(launch->slot);
	uint64_t begun = atomic_fetch_add(&stream->begun, 1) + 1;
	launch->binding = binding = stream_binding(stream, binding_now(stream->client, binding));
	if (!kernel_is_measured(work->kernel))
		stream_unknown(stream, begun);
	uint64_t ahead = goes_ahead(stream, work) ? launch->predicted : 0;
	demand_raise(stream->client, binding, launch->predicted,
		     sms_of_launch(stream, stream->client, binding, &work->call->geometry, ahead,
				   launch_sms(work->kind, &work->call->geometry)));
	if (binding->lowered)
		demand_lower(stream->client, binding->level);
	return load_relaxed(&stream->completed) + 1 == begun;
}

/* The form, the gate in front of it, and the priority. True: the gate was closed. */
static always_inlined bool pass(struct launch *launch, const struct work *work, bool starts)
{
	struct stream *stream = launch->stream;
	const struct level_binding *binding = launch->binding;

	launch->decision = (struct launch_decision){0};
	struct tuned_kernel *tuned = load_acquire(&work->kernel->tuned);
	if (tuned && launch_may_have_form(work->kind, binding))
		launch->decision =
			decide(tuned, stream->client, binding, work->key, launch->predicted);
	bool formed = launch->decision.config || launch->decision.spatial;
	launch->gate = formed ? gate_kind(true, launch->decision.spatial)
			      : gate_of_native(stream->client, binding);
	bool closed = gate_pass(stream, binding, launch->predicted, starts, launch->gate);
	gate_account(stream, launch->predicted);
	launch->ordered = false;
	launch->decision.priority = priority_of_launch(
		stream, binding, launch->predicted,
		launch->decision.config && launch->decision.config->form != WEIR_SLICED);
	if (launch->decision.forms && !launch->slot)
		preempt_want(stream);
	return closed;
}

/* True: the sample is also one of the launch's start. */
static always_inlined bool maybe_sample(struct launch *launch, const struct work *work, bool starts)
{
	const struct client *client = launch->stream->client;
	uint64_t started = starts ? start_measured(launch->binding, launch->predicted) : 0;
	const struct launch_decision *decision = &launch->decision;
	/* The cost of an eviction is measured where there are evictions, but never while forms are
	 * compared: the events in the chain take time. */
	bool parts = decision->config &&
		     (decision->apart || (!decision->sample && gate_is_contended(client)));
	bool due = sampler_is_due(sampler_of(client), launch->predicted, starts);

	/* All launches that wait for lower levels to leave may take twice the mean. Events around
	 * each of them would make them longer still. */
	bool doubted =
		kernel_is_doubted(work->kernel) && !learn_waits_for_lower(client, launch->binding);

	if (kernel_wants_sample(work->kernel, parts) || doubted || decision->sample || due ||
	    started || launch->sample)
		launch->sample = take_sample(launch, work->kernel, work->key, work->call,
					     work->kind, started);
	if (launch->sample)
		launch->sample->parts = parts;
	return launch->sample && started;
}

/* From before the launch's demand on. */
kept_apart static struct sample *sample_early(const struct stream *stream)
{
	struct sample *sample = sample_begin(sampler_of(stream->client), stream->handle);

	if (sample)
		sample->early = true;
	return sample;
}

/* Filled in place: returning the structure by value would stall on store forwarding. Member by
 * member, and only where there is a stream: clearing all of it takes longer than the rest. */
launch_path static void launch_begin(struct launch *launch, CUstream handle, bool per_thread,
				     const struct kernel_call *call, enum launch_kind kind)
{
	launch->stream = NULL;
	struct stream *stream = driver_ready() ? stream_find(handle, per_thread) : NULL;
	const struct level_binding *binding =
		stream ? load_acquire(&stream->client->binding) : NULL;

	if (!binding) {
		if (stream)
			uncounted_launch(stream);
		return;
	}
	uint64_t key = kernel_key(&call->geometry);
	struct work work = {call, kind, kernel_find(key), key};
	uint64_t predicted = predict(work.kernel, call);
	if (stream_is_captured(stream)) {
		launch_captured(stream, binding, predicted, launch_is_apart(kind));
		return;
	}

	if (first_launch_waits(binding, predicted) && !load_relaxed(&work.kernel->tuned) &&
	    launch_may_have_form(kind, binding))
		predicted = await_forms(stream, call, work.kernel, key);
	launch->predicted = predicted;
	launch->sample = (kind == LAUNCH_PLAIN || kind == LAUNCH_GRAPH) &&
					 need_is_measured(stream->client, key)
				 ? sample_early(stream)
				 : NULL;
	bool starts = enter(launch, stream, binding, &work);
	bool closed = pass(launch, &work, starts);
	bool measured =
		launch_may_be_sampled(kind, launch->binding) && maybe_sample(launch, &work, starts);
	if (starts && !measured)
		start_begin(stream->client, closed);
}

/* Launches in the form that was decided. False: not launched; launch natively. */
static bool launch_formed(struct launch *launch, const struct kernel_call *call, CUresult *result)
{
	if (!launch->decision.config)
		return false;
	if (launch->slot && preempt_launch(launch->stream, launch->slot, launch->binding, call,
					   &launch->decision, launch->sample, result))
		return true;
	autotune_not_launched(&launch->decision.tuned->tuner);
	if (launch->decision.spatial) /* the native kernel leaves nothing */
		gate_put(launch->stream, launch->binding, GATE_ALL);
	launch->decision.priority =
		priority_of_launch(launch->stream, launch->binding, launch->predicted, false);
	/* The sample is one of the native kernel. */
	if (launch->sample)
		launch->sample->of.candidate = 0;
	return false;
}

/* Launches with a priority of ours. False: not launched. */
static bool launch_ahead(const struct launch *launch, const struct kernel_call *call,
			 CUstream handle, bool per_thread, CUresult *result)
{
	CUlaunchConfig config = call_config(call);
	config.hStream = handle;
	return priority_launch(launch->stream->client, launch->decision.priority, &config,
			       per_thread, (CUfunction)call->geometry.function, call->params,
			       call->extra, result);
}

/* Launches in another way than the program asked for. False: not launched. */
kept_apart static bool launch_changed(struct launch *launch, const struct kernel_call *call,
				      CUstream handle, bool per_thread, CUresult *result)
{
	return launch_formed(launch, call, result) ||
	       launch_ahead(launch, call, handle, per_thread, result);
}

/* Nothing but the driver's own launch is wanted. */
static inline bool is_plain(const struct launch *launch)
{
	return !launch->stream ||
	       (!launch->decision.config && launch->decision.priority == PRIORITY_OWN);
}

/* @issued: launches that the marker lies behind. */
static void record_marker(struct stream *stream, uint64_t issued, uint64_t predicted)
{
	if (!stream->marker || real(cuEventRecord)(stream->marker, stream->handle) != CUDA_SUCCESS)
		return;
	atomic_store(&stream->marked_predicted, predicted);
	atomic_store(&stream->marked, issued);
	if (!stream->per_thread)
		atomic_fetch_and(&stream->marker_wanted, ~STREAM_MARKER);
}

kept_apart static void record_markers(struct stream *stream, uint64_t issued, uint64_t predicted)
{
	int wanted = load_relaxed(&stream->marker_wanted);

	if (wanted & STREAM_MARKER)
		record_marker(stream, issued, predicted);
	if (wanted & STREAM_MARKERS_EVENLY)
		stream_leave_marker_evenly(stream, predicted);
}

launch_path static CUresult launch_end(struct launch *launch, CUresult result)
{
	struct stream *stream = launch->stream;

	if (!stream)
		return result;
	expect_launched(stream->client);
	priority_note_unordered(stream, launch->ordered);
	if (launch->sample)
		sample_end(sampler_of(stream->client), launch->sample, stream->handle,
			   result == CUDA_SUCCESS);
	if (launch->slot)
		preempt_slot_unlock(launch->slot);
	uint64_t predicted = atomic_fetch_add(&stream->predicted, launch->predicted);
	uint64_t issued = atomic_fetch_add(&stream->issued, 1) + 1;
	if (load_relaxed(&stream->marker_wanted))
		record_markers(stream, issued, predicted + launch->predicted);
	return result;
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **params, void **extra,
			  bool per_thread, __typeof__(&cuLaunchKernelEx) native)
{
	if (!config)
		return native(config, f, params, extra);
	struct kernel_call call = {
		.geometry = {f,
			     {config->gridDimX, config->gridDimY, config->gridDimZ},
			     {config->blockDimX, config->blockDimY, config->blockDimZ},
			     config->sharedMemBytes},
		.params = params,
		.extra = extra,
		.config = config,
	};
	enum launch_kind kind = launch_kind_of(config);
	struct launch launch;
	CUresult result;

	launch_begin(&launch, config->hStream, per_thread, &call, kind);
	launch.ordered = !priority_stays(config);
	if (is_plain(&launch) ||
	    !launch_changed(&launch, &call, config->hStream, per_thread, &result))
		result = native(config, f, params, extra);
	return launch_end(&launch, result);
}

static always_inlined CUresult launch_kernel(const struct kernel_call *call, CUstream stream,
					     bool per_thread, __typeof__(&cuLaunchKernel) native)
{
	const struct geometry *g = &call->geometry;
	struct launch launch;
	CUresult result;

	launch_begin(&launch, stream, per_thread, call, LAUNCH_PLAIN);
	launch.ordered = true;
	if (is_plain(&launch) || !launch_changed(&launch, call, stream, per_thread, &result))
		result = native((CUfunction)g->function, g->grid[0], g->grid[1], g->grid[2],
				g->block[0], g->block[1], g->block[2], g->shared, stream,
				call->params, call->extra);
	return launch_end(&launch, result);
}

#define LAUNCH(name, per_thread)                                                                 \
	EXPORT launch_path CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz,    \
					 unsigned bx, unsigned by, unsigned bz, unsigned shared, \
					 CUstream stream, void **params, void **extra)           \
	{                                                                                        \
		driver_ready();                                                                  \
		return launch_kernel(                                                            \
			&(struct kernel_call){                                                   \
				{f, {gx, gy, gz}, {bx, by, bz}, shared}, params, extra, NULL},   \
			stream, per_thread, real(name));                                         \
	}
LAUNCH(cuLaunchKernel, false)
LAUNCH(cuLaunchKernel_ptsz, true)

#define LAUNCH_EX(name, per_thread)                                                  \
	EXPORT launch_path CUresult name(const CUlaunchConfig *config, CUfunction f, \
					 void **params, void **extra)                \
	{                                                                            \
		driver_ready();                                                      \
		return launch_ex(config, f, params, extra, per_thread, real(name));  \
	}
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)

/* A launch that is always native; the last arguments initialise its struct kernel_call. */
#define NATIVE_LAUNCH(name, kind, stream, per_thread, parameters, arguments, ...)             \
	EXPORT CUresult name parameters                                                       \
	{                                                                                     \
		struct launch launch;                                                         \
                                                                                              \
		launch_begin(&launch, stream, per_thread, &(struct kernel_call){__VA_ARGS__}, \
			     kind);                                                           \
		return launch_end(&launch, real(name) arguments);                             \
	}
#define COOPERATIVE(name, per_thread)                                                              \
	NATIVE_LAUNCH(name, LAUNCH_WHOLE, stream, per_thread,                                      \
		      (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,           \
		       unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params), \
		      (f, gx, gy, gz, bx, by, bz, shared, stream, params),                         \
		      {f, {gx, gy, gz}, {bx, by, bz}, shared}, params)
/* The old interface sets the block size by cuFuncSetBlockShape(), which is not hooked. */
#define OLD(name, stream, width, height, parameters, arguments)                 \
	NATIVE_LAUNCH(name, LAUNCH_WHOLE, stream, false, parameters, arguments, \
		      {.function = f, .grid = {(unsigned)(width), (unsigned)(height), 1}})
#define GRAPH(name, per_thread)                                              \
	NATIVE_LAUNCH(name, LAUNCH_GRAPH, stream, per_thread,                \
		      (CUgraphExec graph, CUstream stream), (graph, stream), \
		      {.function = graph, .grid = {graph_blocks(graph), 1, 1}})
COOPERATIVE(cuLaunchCooperativeKernel, false)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)
OLD(cuLaunch, NULL, 1, 1, (CUfunction f), (f))
OLD(cuLaunchGrid, NULL, width, height, (CUfunction f, int width, int height), (f, width, height))
OLD(cuLaunchGridAsync, stream, width, height,
    (CUfunction f, int width, int height, CUstream stream), (f, width, height, stream))
GRAPH(cuGraphLaunch, false)
GRAPH(cuGraphLaunch_ptsz, true)

/* One launch on several devices. Each stream is gated as for a launch of its own. */
EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned count,
						     unsigned flags)
{
	struct launch launches[16] = {0};
	unsigned n = list ? count : 0;

	for (unsigned i = 0; i < n && i < 16; i++) {
		const CUDA_LAUNCH_PARAMS *l = &list[i];
		struct kernel_call call = {.geometry = {l->function,
							{l->gridDimX, l->gridDimY, l->gridDimZ},
							{l->blockDimX, l->blockDimY, l->blockDimZ},
							l->sharedMemBytes},
					   .params = l->kernelParams};
		launch_begin(&launches[i], l->hStream, false, &call, LAUNCH_OVERLAP);
		/* Not kept locked: a thread with the same streams in another order would deadlock.
		 */
		if (launches[i].slot)
			preempt_slot_unlock(take(launches[i].slot));
	}
	CUresult result = real(cuLaunchCooperativeKernelMultiDevice)(list, count, flags);
	for (unsigned i = 0; i < n && i < 16; i++)
		launch_end(&launches[i], result);
	return result;
}
