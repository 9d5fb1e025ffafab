#include "needing.h"

static_assert(NULL_SMS == 4, "the tests' numbers");

void launch_of(CUfunction kernel, unsigned n, unsigned stream, unsigned blocks)
{
	assert_int_equal(
		cuLaunchKernel(kernel, blocks, 1, 1, 32, 1, 1, 0, STREAM(n, stream), NULL, NULL),
		CUDA_SUCCESS);
}

void launch(unsigned n, unsigned stream, unsigned blocks)
{
	launch_of(KERNEL, n, stream, blocks);
}

bool is_clear(const struct weir_demand_page *page)
{
	return !page->word && !page->whole && !page->sms;
}

bool all_clear(void)
{
	return is_clear(agent.demand[0]) && is_clear(agent.demand[1]) && !agent.status->demand_sms;
}

void finish_work(unsigned n)
{
	driver->streams_busy = 0;
	for (unsigned stream = 1; stream <= NEEDING_STREAM; stream++)
		assert_int_equal(cuStreamSynchronize(STREAM(n, stream)), CUDA_SUCCESS);
	assert_true(eventually(all_clear()));
	atomic_store(&sms_of(client)->gap,
		     0); /* so that the next launch does not count as one of many */
}

unsigned begin(uint32_t yield)
{
	unsigned n = context_welcomed(2);

	finish_work(n);
	atomic_store(&agent.control->yield, yield);
	driver->streams_busy = 1;
	return n;
}

void end(unsigned n)
{
	finish_work(n);
	atomic_store(&agent.control->yield, 0);
	context_gone(n);
	assert_true(all_clear());
}

void assert_shown(uint64_t whole, uint32_t sms)
{
	for (unsigned q = 0; q < 2; q++) {
		assert_int_equal(agent.demand[q]->word, OWN);
		assert_int_equal(agent.demand[q]->whole, whole);
		assert_int_equal(agent.demand[q]->sms, sms);
	}
	assert_int_equal(agent.status->demand_sms, sms);
}
