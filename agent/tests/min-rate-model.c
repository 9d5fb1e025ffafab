#include "min-rate-model.h"

#define STEP (50 * US)

struct model new_model(uint32_t wanted)
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

void run(struct model *model, uint64_t ns)
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

uint64_t had(struct model *model, uint64_t ns)
{
	uint64_t done = model->done, from = model->now;

	run(model, ns);
	return (model->done - done) * 1000 * 1000 / model->clock / larger(model->now - from, 1);
}

uint64_t left(struct model *model, uint64_t ns)
{
	uint64_t other = model->other, from = model->now;

	run(model, ns);
	return (model->other - other) * 1000 / larger(model->now - from, 1);
}
