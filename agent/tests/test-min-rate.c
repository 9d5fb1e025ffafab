/* Minimum rates: their syntax, and the control on synthetic rate curves, with reports that are
 * late, come in lumps, or lie. */
#include "policy/min-rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/base.h"

#define US     1000ull
#define MS     (1000 * US)
#define SECOND (1000 * MS)
#define STEP   (50 * US)

static const struct {
	const char *text;
	uint32_t rate;
	const char *again;
} rates[] = {
	{"1", 1000, "1.0"},   {"1.0", 1000, "1.0"}, {"1.000", 1000, "1.0"}, {"0.8", 800, "0.8"},
	{"0.80", 800, "0.8"}, {"0.05", 50, "0.05"}, {"0.001", 1, "0.001"},  {"0.999", 999, "0.999"},
};

static const char *const no_rates[] = {
	"",     "0",    "0.0",    "0.000",  "1.001", "1.1",  "2",
	"-0.5", "+0.5", " 0.5",   "0.5 ",   "0.5f",  "0,5",  ".5",
	"0.",   "1.",   "00.5",   "0.8000", "80%",   "1e-1", "0x0.8",
	"0.-5", "0..5", "0.0001", "nan",    "inf",   "11",   "0.88888888888888888888...",
};

static void parses(void **state)
{
	char text[MIN_RATE_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint32_t rate = 7;
		assert_true(min_rate_parse(rates[i].text, &rate));
		assert_int_equal(rate, rates[i].rate);
		assert_string_equal(min_rate_format(rate, text), rates[i].again);
	}
	for (size_t i = 0; i < sizeof(no_rates) / sizeof(no_rates[0]); i++) {
		uint32_t rate = 7;
		assert_false(min_rate_parse(no_rates[i], &rate));
		assert_int_equal(rate, 7);
	}
	assert_string_equal(min_rate_format(UINT64_MAX, text), "9.0");
}

/* A client that always has work, and another one. */
struct model {
	struct min_rate rate;
	/* In thousandths: the client's speed beside the other; the clock; GPU time that libweir
	 * predicts, against what it takes. */
	uint64_t beside, clock, predicted;
	uint64_t launch; /* ns, at the full clock */
	uint64_t report; /* ns between two reports */
	uint64_t lag;    /* ns until a decision takes effect */
	uint64_t lies;   /* 0: none; else what it reports, in thousandths */
	bool gone;       /* the other one has no work */
	uint64_t request, gap,
		busy; /* ns: of work alone; between two requests. 0: it always has work */
	uint64_t now, done, other, reported, executed, changes;
	uint64_t asked, answered; /* when the latest request came; 0, or when it was done */
	uint64_t of_request, longest, with_work, counted; /* ns */
	uint64_t host; /* thousandths of the time: work that its processor launches; 0: enough */
	bool runs_alone, was_idle, begins;
};

static struct model new_model(uint32_t wanted)
{
	struct model model = {.clock = 1000,
			      .predicted = 1000,
			      .launch = 200 * US,
			      .report = 500 * US,
			      .lag = 700 * US,
			      .busy = UINT64_MAX,
			      .changes = UINT64_MAX};

	min_rate_set(&model.rate, wanted);
	return model;
}

static bool is_idle(struct model *model)
{
	return model->answered && model->now < model->answered + model->gap;
}

static void answer(struct model *model)
{
	if (model->answered && !is_idle(model)) {
		model->asked = model->now;
		model->answered = model->of_request = 0;
	} else if (model->request && !model->answered && model->of_request >= model->request) {
		model->answered = model->now;
		model->longest = larger(model->longest, model->now - model->asked);
	}
}

static void step(struct model *model)
{
	uint64_t speed = model->clock * (model->runs_alone || model->gone ? 1000 : model->beside);

	bool idle = is_idle(model);
	uint64_t done = idle ? 0 : STEP * speed / 1000000;

	model->now += STEP;
	if (model->host && !idle)
		done = smaller(done, (model->now - model->asked) * model->host / 1000 -
					     model->of_request);
	model->done += done;
	model->of_request += done;
	model->with_work += idle ? 0 : STEP;
	if (idle)
		model->other += STEP;
	else if (!model->runs_alone && !model->gone)
		model->other += STEP * (1000 - model->beside) / 1000;
	if (model->now >= model->changes) {
		model->runs_alone = !model->rate.ahead;
		model->changes = UINT64_MAX;
	}
	answer(model);
	if (!model->answered && model->now / model->report == (model->now - STEP) / model->report)
		return;
	model->reported = model->done / model->launch * model->launch * model->predicted / 1000;
	if (model->lies)
		model->reported = model->done * model->lies / 1000;
}

static void look(struct model *model)
{
	struct min_rate_use use = {.time = model->with_work - model->counted,
				   .busy = smaller(model->request, model->busy),
				   .work = model->reported - model->executed,
				   .works = !is_idle(model),
				   .alone = (!model->rate.ahead && !model->was_idle) || model->gone,
				   .leaving = 2 * model->lag,
				   .begins = model->begins};

	model->executed = model->reported;
	model->counted = model->with_work;
	model->was_idle = is_idle(model);
	model->begins = false;
	min_rate_charge(&model->rate, &use);
	if (model->runs_alone == model->rate.ahead && model->changes == UINT64_MAX)
		model->changes = model->now + model->lag;
}

static void run(struct model *model, uint64_t ns)
{
	uint64_t end = model->now + ns;

	while (model->now < end) {
		uint64_t from = model->now, next = min_rate_next(&model->rate);
		next = next < 100 * US ? 100 * US : next < MS ? next : MS;
		/* A client says at once when work comes. */
		do
			step(model);
		while (model->now < from + next && model->now != model->asked);
		look(model);
	}
}

/* Over @ns: thousandths of its speed alone, at the clock of the time. */
static uint64_t had(struct model *model, uint64_t ns)
{
	uint64_t done = model->done, from = model->now;

	run(model, ns);
	return (model->done - done) * 1000 * 1000 / model->clock / larger(model->now - from, 1);
}

/* The other one: in thousandths of the time. */
static uint64_t left(struct model *model, uint64_t ns)
{
	uint64_t other = model->other, from = model->now;

	run(model, ns);
	return (model->other - other) * 1000 / larger(model->now - from, 1);
}

/* In each second, whatever the speed beside the other, the clock, the launches and the predictions.
 */
static void meets(void **state)
{
	static const uint64_t besides[] = {0, 300, 480}, clocks[] = {1000, 700},
			      launches[] = {20 * US, 200 * US, 3 * MS}, predictions[] = {800, 1300};

	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100)
		for (unsigned i = 0; i < 36; i++) {
			struct model model = new_model(wanted);
			model.beside = besides[i % 3];
			model.launch = launches[i / 3 % 3];
			model.clock = clocks[i / 9 % 2];
			model.predicted = predictions[i / 18];
			run(&model, 2 * SECOND);
			for (unsigned second = 0; second < 4; second++)
				assert_in_range(had(&model, SECOND), wanted - 20, wanted + 30);
			assert_false(model.rate.missed);
			assert_in_range(model.rate.attained, wanted - 20, wanted + 23);
		}
}

/* A queue of many steps, of which the client hears each few milliseconds: in two seconds. */
static void meets_with_a_long_queue(void **state)
{
	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100)
		for (uint64_t report = MS; report <= 5 * MS; report += MS) {
			struct model model = new_model(wanted);
			model.beside = 60;
			model.report = report;
			model.lag = 2 * MS;
			run(&model, SECOND);
			for (unsigned i = 0; i < 10; i++)
				assert_in_range(had(&model, 2 * SECOND), wanted - 15, wanted + 15);
		}
}

/* A training step whose processor is too slow for the GPU for half a second at a time, as on an
 * H100. What it lacks while it is slow alone it gets when it is fast. */
static void meets_at_uneven_speed(void **state)
{
	(void)state;
	for (uint64_t report = MS; report <= 5 * MS; report += 2 * MS) {
		struct model model = new_model(900);
		model.beside = 60;
		model.report = report;
		uint64_t done = 0;
		for (unsigned half = 0; half < 12; half++) {
			model.clock = half % 2 ? 600 : 1000;
			done = half == 4 ? model.done : done;
			run(&model, SECOND / 2);
		}
		assert_in_range((model.done - done) * 1000 / (4 * SECOND * 8 / 10), 845, 920);
	}
}

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

/* Launches that are longer than the time in which others are out: over several of them. */
static void meets_with_long_launches(void **state)
{
	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100) {
		struct model model = new_model(wanted);
		model.beside = 200;
		model.launch = 20 * MS;
		run(&model, 4 * SECOND);
		assert_in_range(had(&model, 10 * SECOND), wanted - 20, wanted + 20);
	}
}

/* Others have launches of 8 ms, which only end. */
static void waits_until_others_have_left(void **state)
{
	struct model model = new_model(700);

	(void)state;
	model.lag = 8 * MS;
	model.beside = 100;
	run(&model, 2 * SECOND);
	assert_in_range(had(&model, 4 * SECOND), 680, 730);
}

/* Another program of the container keeps the GPU busy for a quarter of its time. What is known of
 * its speed alone follows at once, so others do not wait for what it cannot do. */
static void follows_another_program(void **state)
{
	struct model model = new_model(900);

	(void)state;
	model.beside = 500;
	run(&model, 3 * SECOND);
	model.predicted = 250;
	model.executed = model.reported = model.done / model.launch * model.launch / 4;
	run(&model, 200 * MS);
	assert_in_range(left(&model, SECOND), 60, 110);
	model.predicted = 1000;
	model.executed = model.reported = model.done / model.launch * model.launch;
	run(&model, 2 * SECOND);
	assert_in_range(had(&model, SECOND), 880, 920);
}

/* It is another process, so the difference need not be large. One that begins processes all the
 * time does not keep others out by that. */
static void follows_another_process(void **state)
{
	struct model model = new_model(900);

	(void)state;
	model.beside = 950;
	run(&model, 3 * SECOND);
	model.predicted = 750;
	model.executed = model.reported = model.done / model.launch * model.launch * 3 / 4;
	model.begins = true;
	run(&model, 100 * MS);
	assert_in_range(model.rate.alone.work * 1000 / model.rate.alone.time, 730, 770);
	uint64_t other = model.other, from = model.now;
	for (unsigned i = 0; i < 500; i++) {
		model.begins = true;
		run(&model, 4 * MS);
	}
	assert_in_range((model.other - other) * 1000 / (model.now - from), 25, 50);
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

/* What is left over goes to others: all of it if it is fast enough beside them. */
static void leaves_the_rest(void **state)
{
	struct model model = new_model(500);

	(void)state;
	model.beside = 700;
	run(&model, SECOND);
	assert_in_range(had(&model, 2 * SECOND), 690, 710);
	assert_in_range(left(&model, SECOND), 290, 300);
	model.beside = 0;
	run(&model, 2 * SECOND);
	assert_in_range(left(&model, SECOND), 470, 520);
	min_rate_set(&model.rate, 900);
	run(&model, SECOND);
	assert_in_range(left(&model, 2 * SECOND), 70, 120);
	min_rate_set(&model.rate, MIN_RATE_ONE);
	run(&model, SECOND);
	assert_in_range(left(&model, SECOND), 0, 2);
}

/* The clock falls, the other one becomes another: it is met again soon. */
static void follows(void **state)
{
	struct model model = new_model(800);

	(void)state;
	model.beside = 100;
	run(&model, 2 * SECOND);
	model.clock = 750;
	run(&model, 3 * SECOND);
	assert_in_range(had(&model, SECOND), 780, 820);
	model.beside = 600;
	run(&model, SECOND);
	assert_in_range(had(&model, SECOND), 780, 820);
}

/* While nobody else wanted the GPU it earned nothing to be slowed down for later. */
static void time_alone_is_no_credit(void **state)
{
	struct model model = new_model(800);

	(void)state;
	model.gone = true;
	run(&model, 20 * SECOND);
	model.gone = false;
	model.beside = 0;
	assert_in_range(had(&model, SECOND), 780, 820);
}

/* Alone for weeks it stays ahead, though it reports nothing. */
static void stays_ahead_alone(void **state)
{
	struct model model = new_model(900);
	struct min_rate_use use = {.time = SECOND, .alone = true};

	(void)state;
	run(&model, SECOND);
	for (unsigned day = 0; day < 70; day++) {
		for (unsigned second = 0; second < 86400; second++)
			min_rate_charge(&model.rate, &use);
		assert_true(model.rate.ahead);
	}
}

/* A client that reports no work, too much, or more by the second, does not keep others out: they
 * have about a quarter of their part. */
static void lies_gain_little(void **state)
{
	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100) {
		struct model model = new_model(wanted);
		run(&model, SECOND); /* honestly at first */
		model.lies = 1;
		run(&model, SECOND);
		assert_in_range(left(&model, 4 * SECOND), (1000 - wanted) / 6, 1000);
		model.lies = 100000;
		run(&model, SECOND);
		assert_in_range(left(&model, 4 * SECOND), (1000 - wanted) / 6, 1000);
	}
}

static void survives_hostile_numbers(void **state)
{
	struct min_rate rate = {0};
	struct min_rate_use use = {.time = UINT64_MAX, .work = UINT64_MAX, .alone = true};

	(void)state;
	assert_false(min_rate_charge(&rate, &use)); /* it has none */
	assert_int_equal(rate.time, 0);
	min_rate_set(&rate, 1);
	for (unsigned i = 0; i < 1000; i++) {
		use.alone = i % 3;
		use.work = i % 2 ? UINT64_MAX : 0;
		min_rate_charge(&rate, &use);
		assert_in_range(rate.credit + 20 * (int64_t)SECOND, 0, 40 * SECOND);
	}
	/* A nanosecond of work in hours, and then a lot. */
	rate = (struct min_rate){0};
	min_rate_set(&rate, 999);
	for (unsigned i = 0; i < 1000; i++)
		min_rate_charge(&rate, &(struct min_rate_use){
					       .time = SECOND, .work = i == 900, .alone = true});
	use = (struct min_rate_use){.time = MS, .work = UINT64_MAX, .alone = false};
	for (unsigned i = 0; i < 1000; i++)
		min_rate_charge(&rate, &use);
	assert_in_range(rate.credit + 20 * (int64_t)SECOND, 0, 40 * SECOND);
	assert_true(min_rate_next(&rate) > 0);
}

/* It is missed when others do not leave, and says why. */
static void says_what_hinders(void **state)
{
	struct min_rate rate = {0};
	bool news = false;

	(void)state;
	min_rate_set(&rate, 800);
	for (unsigned i = 0; i < 100; i++) /* alone, until its speed is known */
		news |= min_rate_charge(
			&rate, &(struct min_rate_use){.time = MS, .work = MS, .alone = true});
	for (unsigned i = 0; i < 3000; i++)
		news |= min_rate_charge(
			&rate, &(struct min_rate_use){
				       .time = MS, .work = MS / 2, .hindered = MIN_RATE_CROWDED});
	assert_true(news && rate.missed && !rate.ahead);
	assert_int_equal(rate.hindered, MIN_RATE_CROWDED);
	assert_in_range(rate.attained, 495, 505);
	assert_non_null(strstr(min_rate_why(rate.hindered), "minimum rates"));
	assert_in_range(rate.missed_time / MS, 2000, 3100);
	news = false;
	for (unsigned i = 0; i < 2500; i++)
		news |= min_rate_charge(
			&rate, &(struct min_rate_use){.time = MS, .work = MS, .alone = true});
	assert_true(news && !rate.missed);
	assert_int_equal(rate.hindered, 0);
	assert_null(min_rate_why(0));
	assert_non_null(strstr(min_rate_why(MIN_RATE_ABOVE | MIN_RATE_CROWDED), "higher-level"));
	assert_non_null(strstr(min_rate_why(MIN_RATE_EQUALS), "share"));
}

/* Its speed alone was never seen: nothing is claimed, unless something stood in its way. */
static void unknown_speed(void **state)
{
	struct min_rate rate = {0};

	(void)state;
	min_rate_set(&rate, 800);
	for (unsigned i = 0; i < 1100; i++)
		min_rate_charge(&rate, &(struct min_rate_use){.time = MS, .work = MS / 2});
	assert_true(rate.attained == MIN_RATE_UNKNOWN);
	assert_false(rate.missed);
	for (unsigned i = 0; i < 1000; i++)
		min_rate_charge(&rate,
				&(struct min_rate_use){.time = MS, .hindered = MIN_RATE_ABOVE});
	assert_true(rate.missed && rate.attained == MIN_RATE_UNKNOWN);
	assert_int_equal(rate.hindered, MIN_RATE_ABOVE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(meets),
		cmocka_unit_test(meets_with_a_long_queue),
		cmocka_unit_test(meets_at_uneven_speed),
		cmocka_unit_test(answers_requests),
		cmocka_unit_test(leaves_what_its_processor_leaves),
		cmocka_unit_test(learns_from_requests),
		cmocka_unit_test(meets_with_long_launches),
		cmocka_unit_test(waits_until_others_have_left),
		cmocka_unit_test(follows_another_program),
		cmocka_unit_test(follows_another_service),
		cmocka_unit_test(follows_another_process),
		cmocka_unit_test(leaves_the_rest),
		cmocka_unit_test(follows),
		cmocka_unit_test(time_alone_is_no_credit),
		cmocka_unit_test(stays_ahead_alone),
		cmocka_unit_test(lies_gain_little),
		cmocka_unit_test(survives_hostile_numbers),
		cmocka_unit_test(says_what_hinders),
		cmocka_unit_test(unknown_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
