/* Minimum rates of containers that answer requests. */
#include "min-rate-model.h"

/* Each request is slowed down by about what the rate leaves to others, and not one in ten by all of
 * it. Others have more than the time between requests. */
static void answer_requests(uint32_t wanted, uint64_t beside, uint64_t request)
{
	struct model model = new_model(wanted);

	model.beside = beside;
	model.request = request;
	model.gap = 1500 * US;
	model.report = 250 * US;
	model.lag = 200 * US;
	run(&model, SECOND);
	model.longest = 0;
	uint64_t done = model.done, time = model.with_work, other = model.other, from = model.now;
	run(&model, 10 * SECOND);
	uint64_t worst = 1000 * 1000 / wanted + 200, with_work = model.with_work - time;
	uint64_t gaps = model.now - from - with_work;
	assert_in_range(model.longest * 1000 / request, 1000, worst);
	assert_in_range((model.done - done) * 1000 / with_work, wanted - 15, wanted + 60);
	assert_true(model.other - other > gaps + with_work * (1000 - wanted) / 3000);
}

static void answers_requests(void **state)
{
	(void)state;
	for (uint32_t wanted = 800; wanted <= 900; wanted += 100)
		for (uint64_t beside = 300; beside <= 700; beside += 200)
			for (uint64_t request = 3 * MS; request <= 12 * MS; request *= 2)
				answer_requests(wanted, beside, request);
}

/* The processor of a small network keeps the GPU busy for a quarter of each request, of 8 ms. The
 * work that waits while others run is done soon afterwards, so they can run for most of the time.
 */
static void leaves_what_its_processor_leaves(void **state)
{
	(void)state;
	for (uint64_t beside = 200; beside <= 400; beside += 50) {
		struct model model = new_model(900);
		model.host = 250;
		model.beside = beside;
		model.request = 2 * MS;
		model.busy = 100 * US;
		model.gap = 8 * MS;
		model.launch = 20 * US;
		model.report = 500 * US;
		model.lag = 100 * US;
		run(&model, SECOND);
		model.longest = 0;
		uint64_t time = model.with_work, other = model.other, from = model.now;
		run(&model, 4 * SECOND);
		uint64_t with_work = model.with_work - time, gaps = model.now - from - with_work;
		assert_in_range(model.longest, 8 * MS, 9 * MS + MS / 4);
		assert_in_range((model.other - other - gaps) * 1000 / with_work, 500, 800);
	}
}

/* Between short requests it learns its speed alone, too. If it reports nothing others do not wait
 * for ever. */
static void learns_from_requests(void **state)
{
	struct model model = new_model(900);

	(void)state;
	model.beside = 500;
	model.request = 3 * MS;
	model.gap = MS;
	model.report = 250 * US;
	model.lag = 200 * US;
	run(&model, 3 * SECOND);
	model.clock = 700;
	run(&model, 5 * SECOND);
	assert_in_range(model.rate.alone.work * 1000 / model.rate.alone.time, 680, 735);
	uint64_t done = model.done, time = model.with_work;
	run(&model, 5 * SECOND);
	assert_in_range((model.done - done) * 1000 / (model.with_work - time), 620, 680);
	/* One that lasts, whatever it says. */
	model.busy = 3 * MS;
	model.request = UINT64_MAX / 2;
	model.clock = 1000;
	run(&model, 4 * SECOND);
	assert_in_range(had(&model, 2 * SECOND), 880, 920);
	assert_int_equal(model.rate.busy, 0);
	model.lies = 1;
	run(&model, 2 * SECOND);
	assert_in_range(left(&model, 4 * SECOND), (1000 - 900) / 6 / 2, 1000);
}

/* It answers requests, as ResNet-50 does after kernels without a gap: within half a second. */
static void follows_another_service(void **state)
{
	struct model model = new_model(900);

	(void)state;
	model.beside = 500;
	model.request = 8 * MS;
	model.gap = 8 * MS;
	model.report = 250 * US;
	model.lag = 200 * US;
	run(&model, 3 * SECOND);
	assert_in_range(model.rate.alone.work * 1000 / model.rate.alone.time, 950, 1020);
	model.predicted = 250;
	model.executed = model.reported = model.done / model.launch * model.launch / 4;
	run(&model, SECOND / 2);
	assert_in_range(model.rate.alone.work * 1000 / model.rate.alone.time, 220, 270);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_requests),
		cmocka_unit_test(leaves_what_its_processor_leaves),
		cmocka_unit_test(learns_from_requests),
		cmocka_unit_test(follows_another_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
