#include "measure/predict.h"

#include "weir/log.h"

#include <string.h>

#define MODELS         512u /* a power of two */
#define WAYS           4u
#define FIT_EVERY      (10 * NS_PER_MS) /* ns; one takes 0.1 ms */
#define LOOKED_THROUGH 64u              /* parameters */

/* Where a scalar argument lies. */
struct slot {
	uint16_t index, offset;
	uint32_t size; /* 1 .. 8 */
};

/* What the launch path reads. */
struct view {
	uint32_t unloads; /* of code, when the slots were right */
	uint32_t n_slots;
	struct slot slots[RIDGE_SCALARS];
	struct ridge_model model;
};
#define VIEW_WORDS ((sizeof(struct view) + 7) / 8)

struct model {
	_Atomic uint64_t key;      /* the function; 0: free */
	_Atomic uint32_t sequence; /* odd: the words are being written */
	_Atomic uint64_t words[VIEW_WORDS];

	/* Worker. */
	bool known; /* where arguments lie */
	struct view view;
	struct ridge ridge;
	bool stale;       /* it has learned something since it was fitted */
	uint64_t learned; /* `samples` when it last learned */
};

static struct model models[MODELS];
static _Atomic uint32_t stale; /* models */
static uint64_t samples;       /* worker: learned from by all models */

static struct model *set_of(uint64_t key)
{
	return &models[(key >> 4) * 0x9e3779b97f4a7c15u >> 32 & (MODELS - WAYS)];
}

static struct model *find(const void *function)
{
	uint64_t key = (uint64_t)(uintptr_t)function;
	struct model *set = set_of(key);

	for (size_t i = 0; i < WAYS; i++) {
		if (load_relaxed(&set[i].key) == key)
			return &set[i];
	}
	return NULL;
}

/* False: there is none, or the worker writes it. Words are loaded before the sequence is loaded
 * again, and a reader that sees a word of a later view sees its odd sequence, too. */
static bool look_up(struct view *view, const void *function)
{
	const struct model *model = find(function);
	uint64_t words[VIEW_WORDS];

	if (!model)
		return false;
	uint32_t sequence = load_acquire(&model->sequence);
	for (size_t i = 0; i < VIEW_WORDS; i++)
		words[i] = load_acquire(&model->words[i]);
	if (sequence & 1 || !sequence || load_relaxed(&model->sequence) != sequence ||
	    find(function) != model)
		return false;
	memcpy(view, words, sizeof(*view));
	return true;
}

static bool read_unpacked(uint64_t *scalars, const struct view *view, void **params)
{
	for (uint32_t i = 0; i < view->n_slots; i++) {
		const struct slot *slot = &view->slots[i];
		if (!params[slot->index])
			return false;
		memcpy(&scalars[i], params[slot->index], slot->size);
	}
	return true;
}

static bool read_packed(uint64_t *scalars, const struct view *view, const struct kernel_call *call)
{
	const void *buffer;
	size_t size;

	if (!call_packed(call, &buffer, &size))
		return false;
	for (uint32_t i = 0; i < view->n_slots; i++) {
		const struct slot *slot = &view->slots[i];
		if ((size_t)slot->offset + slot->size > size)
			return false;
		memcpy(&scalars[i], (const uint8_t *)buffer + slot->offset, slot->size);
	}
	return true;
}

static struct arguments arguments_of(const struct view *view, const struct kernel_call *call)
{
	struct arguments arguments = {0};

	if (view->unloads != kernel_unloads())
		return arguments;
	if (!view->n_slots)
		arguments.known = true;
	else if (call->params)
		arguments.known = read_unpacked(arguments.scalars, view, call->params);
	else
		arguments.known = read_packed(arguments.scalars, view, call);
	return arguments;
}

struct arguments predict_arguments(const struct kernel_call *call)
{
	struct view view;

	if (!look_up(&view, call->geometry.function))
		return (struct arguments){0};
	return arguments_of(&view, call);
}

static uint64_t evaluate(const struct ridge_model *model, const struct geometry *geometry,
			 const struct arguments *arguments)
{
	double x[RIDGE_FEATURES];

	if (!arguments->known)
		return 0;
	ridge_describe(x, geometry->grid, geometry->block, geometry->shared, arguments->scalars);
	return (uint64_t)ridge_predict(model, x);
}

uint64_t predict_by_sizes(const struct kernel_call *call, uint64_t mean)
{
	struct view view;

	if (!look_up(&view, call->geometry.function) || view.model.shape == RIDGE_NONE)
		return mean;
	struct arguments arguments = arguments_of(&view, call);
	uint64_t ns = evaluate(&view.model, &call->geometry, &arguments);
	return ns ? ns : mean;
}

/* Worker. */

/* Overwrites the model that has learned nothing for the longest time. */
static struct model *claim(const void *function)
{
	uint64_t key = (uint64_t)(uintptr_t)function;
	struct model *set = set_of(key), *victim = set;

	for (size_t i = 1; i < WAYS && victim->learned; i++) {
		if (set[i].learned < victim->learned)
			victim = &set[i];
	}
	atomic_store(&victim->sequence, atomic_load(&victim->sequence) | 1);
	if (victim->stale)
		atomic_fetch_sub(&stale, 1);
	victim->known = victim->stale = false;
	victim->view = (struct view){0};
	victim->ridge.n = 0;
	atomic_store(&victim->key, key);
	return victim;
}

static void publish(struct model *model)
{
	uint64_t words[VIEW_WORDS] = {0};
	uint32_t sequence = atomic_load(&model->sequence) | 1;

	memcpy(words, &model->view, sizeof(model->view));
	atomic_store(&model->sequence, sequence);
	for (size_t i = 0; i < VIEW_WORDS; i++)
		store_release(&model->words[i], words[i]);
	atomic_store(&model->sequence, sequence + 1 ? sequence + 1 : 2);
}

/* Not every driver tells: then the model uses no arguments. */
static void find_slots(struct view *view, const void *function)
{
	CUlibrary library = NULL;
	bool is_kernel =
		real(cuKernelGetLibrary)(&library, (CUkernel)function) == CUDA_SUCCESS && library;

	view->n_slots = 0;
	for (size_t i = 0; i < LOOKED_THROUGH && view->n_slots < RIDGE_SCALARS; i++) {
		size_t offset = 0, size = 0;
		CUresult result =
			is_kernel
				? real(cuKernelGetParamInfo)((CUkernel)function, i, &offset, &size)
				: real(cuFuncGetParamInfo)((CUfunction)function, i, &offset, &size);
		if (result != CUDA_SUCCESS || !size)
			break;
		if (size <= sizeof(uint64_t) && offset <= UINT16_MAX)
			view->slots[view->n_slots++] =
				(struct slot){(uint16_t)i, (uint16_t)offset, (uint32_t)size};
	}
}

/* Another kernel may have this handle now. */
static void renew(struct model *model, const void *function, uint32_t unloads)
{
	struct view view = {.unloads = unloads};

	find_slots(&view, function);
	if (view.n_slots == model->view.n_slots &&
	    memcmp(view.slots, model->view.slots, sizeof(view.slots)) == 0)
		view.model = model->view.model;
	else
		model->ridge.n = 0;
	model->view = view;
	model->known = true;
	publish(model);
}

uint64_t predict_learn(const struct geometry *geometry, const struct arguments *arguments,
		       uint32_t unloads, uint64_t ns)
{
	double x[RIDGE_FEATURES];

	/* Graphs, and launches of the old interface, have no blocks. */
	if (!geometry->block[0])
		return 0;
	struct model *model = find(geometry->function);
	if (!model)
		model = claim(geometry->function);
	model->learned = ++samples;
	if (!model->known || model->view.unloads != unloads) {
		if (unloads == kernel_unloads())
			renew(model, geometry->function, unloads);
		return 0;
	}
	if (!arguments->known)
		return 0;
	uint64_t predicted = evaluate(&model->view.model, geometry, arguments);
	ridge_describe(x, geometry->grid, geometry->block, geometry->shared, arguments->scalars);
	if (ridge_learn(&model->ridge, x, (double)ns) && !model->stale) {
		model->stale = true;
		atomic_fetch_add(&stale, 1);
	}
	return predicted;
}

bool predict_pending(void)
{
	return atomic_load(&stale) != 0;
}

static void fit(struct model *model)
{
	bool was = model->view.model.shape != RIDGE_NONE;

	model->stale = false;
	if (ridge_fit(&model->ridge, &model->view.model) && !was)
		log_debug("a kernel's time is known from %zu sizes, within %.1f %%", model->ridge.n,
			  100 * model->view.model.error);
	publish(model);
	atomic_fetch_sub(&stale, 1);
}

void predict_work(uint64_t now)
{
	static uint64_t last;
	static size_t next; /* in turn */

	if (!predict_pending() || now - last < FIT_EVERY)
		return;
	for (size_t i = 0; i < MODELS; i++, next = (next + 1) % MODELS) {
		if (!models[next].stale)
			continue;
		fit(&models[next]);
		break;
	}
	last = now;
}
