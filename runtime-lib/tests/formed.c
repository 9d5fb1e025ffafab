#include "formed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned kernels;
static uint32_t evicted[PREEMPT_SLOTS_MAX]; /* evictions reported in each slot */

static uint64_t pointer = 0x1122334455667788;
static uint32_t number = 0x99aabbcc;
static double real_number = 1.5;
void *params[] = {&pointer, &number, &real_number};
static const struct weir_object_param params_at[] = {{0, 8}, {8, 4}, {16, 8}};
const uint64_t symbols[] = {0xabcd00, 0xabcd08};

struct rewritten in_forms(unsigned forms)
{
	struct rewritten rewritten = {
		.n_params = 3, .params = params_at, .n_symbols = 2, .symbols = symbols};

	for (unsigned form = 0; form < WEIR_FORM_COUNT; form++) {
		if (forms & 1u << form)
			rewritten.variants[form][0] = (struct variant){
				FORM(form), .save_fixed = 100, .save_per_thread = 7};
	}
	return rewritten;
}

void launch_call(unsigned n, CUfunction kernel, unsigned blocks)
{
	assert_int_equal(
		cuLaunchKernel(kernel, blocks, 1, 1, 64, 1, 1, 0, STREAM(n, 1), params, NULL),
		CUDA_SUCCESS);
}

unsigned welcomed(uint8_t level)
{
	unsigned n = context_welcomed(level);

	agent.control->above = 1;
	memset(evicted, 0, sizeof(evicted));
	return n;
}

void gone(unsigned n)
{
	context_gone(n);
	driver->elapsed_ns = driver->form_elapsed_ns = 50000;
}

void land_blocks(unsigned evictions, uint64_t blocks)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	for (size_t i = 0; slots && i < PREEMPT_SLOTS_MAX; i++) {
		struct preempt_slot *slot = &slots->slot[i];
		uint32_t last = atomic_load(&slot->last), seen = atomic_load(&slot->seen);
		for (uint32_t serial = seen + 1; serial != last + 1; serial++) {
			atomic_store(&slot->reports[serial % FLIGHTS_MAX].blocks, blocks);
			atomic_store(&slot->reports[serial % FLIGHTS_MAX].launch,
				     (uint64_t)(evicted[i] += evictions) << 32 | serial);
		}
		assert_true(eventually(atomic_load(&slot->seen) == last));
	}
}

void land(unsigned evictions)
{
	land_blocks(evictions, 0);
}

bool is_form(const struct null_op *op)
{
	return op->kind == NULL_LAUNCH && (uintptr_t)op->function >= NULL_FORM;
}

bool settles(unsigned n, CUfunction kernel, unsigned blocks)
{
	for (int i = 0; i < 400; i++) {
		launch_call(n, kernel, blocks);
		land(0);
		usleep(2000);
		for (size_t k = 0; k < TUNED_KERNELS_MAX; k++) {
			const struct tuned_kernel *tuned = tuning_at(k);
			if (tuned && atomic_load(&tuned->key) &&
			    tuned->geometry.function == kernel &&
			    tuned->tuner.state == AUTOTUNE_SETTLED &&
			    !atomic_load(&tuned->tuner.comparing))
				return true;
		}
	}
	return false;
}

CUfunction kernel_of(uint64_t ns, const struct rewritten *rewritten)
{
	CUfunction kernel = KERNEL(++kernels);
	struct function *function = function_find(client, kernel);

	assert_non_null(function);
	atomic_store(&function->rewritten, rewritten);
	atomic_store(&function->state, FUNCTION_READY);
	driver->elapsed_ns = driver->form_elapsed_ns = ns;
	return kernel;
}

size_t ops_of(unsigned n, CUfunction kernel, unsigned blocks)
{
	driver->n_ops = 0;
	launch_call(n, kernel, blocks);
	land(0);
	return driver->n_ops;
}

const struct weir_persistent *hidden_of(const struct null_op *op)
{
	return (const void *)(op->parameters + 24);
}

unsigned in_form(void)
{
	size_t n = driver->n_ops;
	unsigned found = 0;

	for (size_t i = 0; i < n && i < NULL_OPS; i++)
		found += is_form(&driver->ops[i]) && hidden_of(&driver->ops[i])->demand;
	return found;
}

const struct tuned_kernel *tuned_for(CUfunction kernel)
{
	for (size_t i = 0; tuning_at(i); i++) {
		const struct tuned_kernel *tuned = tuning_at(i);
		if (atomic_load(&tuned->key) && tuned->geometry.function == kernel)
			return tuned;
	}
	return NULL;
}

bool is_tried(CUfunction kernel)
{
	const struct tuned_kernel *tuned = tuned_for(kernel);

	return tuned && tuned->tuner.state == AUTOTUNE_COMPARING;
}

unsigned forms_of(unsigned n, CUfunction kernel, unsigned count)
{
	unsigned forms = 0;

	for (unsigned i = 0; i < count; i++) {
		driver->n_ops = 0;
		launch_call(n, kernel, BLOCKS);
		forms += in_form() != 0;
		land(0);
		usleep(2000);
	}
	return forms;
}

void somebody_waits(unsigned n)
{
	agent.demand[1]->word = 1;
	launch_call(n, (CUfunction)0x8000, 1);
	assert_true(eventually(atomic_load(&waiters_of(client)->waiting)));
	agent.demand[1]->word = 0;
}

const struct launch_config *config_in_use(const struct tuned_kernel *tuned, enum waiting waiting)
{
	return &tuned->tuner.candidates[tuned->tuner.in_use[waiting]].config;
}
