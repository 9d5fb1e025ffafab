#include "persistent.h"

#include "launch.h"
#include "random.h"

#include "weir/tickets.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS      3
#define WORKERS_MAX  7
#define LAUNCHES_MAX 100000
/* In the save of a group (transformer/passes/safe-point.h). */
#define SAVED_TICKETS    16
#define SAVED_TICKETS_AT 32

/* What the host asks of a launch. */
struct asked {
	volatile uint64_t any; /* the quota is looked for */
	volatile uint64_t demand;
	volatile uint32_t hold, sms;
};

/* SMs that are to be left: none mostly, or garbage. */
static uint32_t random_sms(struct run *run)
{
	unsigned n = random_below(&run->random, 2 * SMS + 1);

	return n < 2 * SMS ? (n > SMS ? n - SMS : 0) : (uint32_t)random_below(&run->random, ~0u);
}

/* The quota changes while the workers run. */
static void change_quota(struct run *run, struct asked *asked)
{
	for (unsigned k = random_below(&run->random, 4); k; k--) {
		usleep(random_below(&run->random, 100));
		asked->sms = random_sms(run);
		asked->any = random_below(&run->random, 4);
	}
}

/* Runs the workers of a launch on threads, with a demand at the start, later, or never. A stale
 * launch runs beside them. */
static void run_workers(struct launch *launch, struct launch *stale, struct asked *asked)
{
	pthread_t threads[THREADS + 1];
	unsigned moment = random_below(&launch->run->random, 4), n = 0;

	launch->ptx.grid = (struct ptx_dim){launch->run->workers, 1, 1};
	launch->next = 0;
	stale->ptx.grid = launch->ptx.grid;
	stale->next = 0;
	asked->demand = moment == 0;
	if (!pthread_create(&threads[n], NULL, launch_blocks, stale))
		n++;
	for (unsigned k = 0; k < THREADS; k++)
		if (!pthread_create(&threads[n], NULL, launch_blocks, launch))
			n++;
	change_quota(launch->run, asked);
	if (moment == 1)
		usleep(random_below(&launch->run->random, 300));
	if (moment != 3)
		asked->demand = 1;
	while (n)
		pthread_join(threads[--n], NULL);
}

static bool fail(struct run *run, enum weir_form form, const char *what)
{
	snprintf(run->message, sizeof(run->message), "%s: %s", weir_form_name(form), what);
	return false;
}

/* What the words and the report say of a launch that left some SMs. */
static bool count_quota(struct run *run, enum weir_form form, const struct weir_words *words,
			volatile struct weir_report *report, uint32_t partial, uint32_t returns)
{
	uint64_t now = (uint64_t)words->returns << 32 | words->partial;

	run->partial += words->partial - partial;
	run->returns += words->returns - returns;
	if (words->partial - partial > 1 || words->returns - returns > 1)
		return fail(run, form, "a launch left more than once");
	if (words->returns != returns && words->done == run->serial)
		return fail(run, form, "a launch that is done came back");
	if (report->partial != (words->partial != partial ? now : 0))
		return fail(run, form, "the report does not tell that workers left");
	if (words->quota & (WEIR_QUOTA_GONE | WEIR_QUOTA_RETURNING) || words->asked ||
	    words->ticket & WEIR_TICKET_ASKED || (words->done == run->serial && words->quota))
		return fail(run, form, "the quota is not in order");
	return true;
}

/* Launches continuations until the words say done, then one more, which must do nothing. The number
 * of workers changes between launches unless blocks are saved. */
static bool run_until_done(struct run *run, enum weir_form form, uint32_t *out,
			   struct weir_words *words, struct weir_persistent *hidden,
			   struct asked *asked)
{
	volatile struct weir_report *report = (volatile void *)(uintptr_t)hidden->report;
	uint32_t saved = words->saved, drained = words->drained, partial, returns;
	bool has_saved;
	struct weir_persistent before = *hidden;
	struct launch launch, stale;
	unsigned launches = 0;

	before.serial--;
	before.fresh = 0;
	run->serial = hidden->serial;
	launch_init(&stale, run, form, out, &before, sizeof(before));
	while (words->done != hidden->serial && launches++ < LAUNCHES_MAX) {
		if (form != WEIR_RESUMABLE || launches == 1)
			run->workers = 1 + random_below(&run->random, WORKERS_MAX);
		hidden->poller = run->workers > 1 && random_below(&run->random, 2);
		hidden->dealt = random_below(&run->random, 2) ? run->workers - hidden->poller : 0;
		launch_init(&launch, run, form, out, hidden, sizeof(*hidden));
		*report = (struct weir_report){0};
		partial = words->partial;
		returns = words->returns;
		run_workers(&launch, &stale, asked);
		hidden->fresh = 0;
		if (!launch_is_good(&launch, weir_form_name(form)) ||
		    !launch_is_good(&stale, "stale"))
			return false;
		has_saved = form == WEIR_RESUMABLE && run->save_fixed && words->resume;
		run->saves += has_saved;
		if (has_saved != (words->saved != saved))
			return fail(run, form, "saved blocks are not counted");
		saved = words->saved;
		if (report->launch != ((uint64_t)words->evictions << 32 | words->done) ||
		    report->blocks != ((uint64_t)words->drained << 32 | words->saved))
			return fail(run, form, "the report is not what the words say");
		if (words->left || words->ticket > hidden->tickets)
			return fail(run, form, "the words are not in order");
		if (!count_quota(run, form, words, report, partial, returns))
			return false;
	}
	if (words->done != hidden->serial)
		return fail(run, form, "it never gets done");
	run->drains += words->drained - drained;
	if (!hidden->drain && words->drained != drained)
		return fail(run, form, "a block that had to be saved was drained");
	launch_init(&launch, run, form, out, hidden, sizeof(*hidden));
	run_workers(&launch, &stale, asked);
	if (words->done != hidden->serial || words->left || words->ticket || words->resume)
		return fail(run, form, "a continuation too many did something");
	return launch_is_good(&launch, "when done");
}

/* Memory for all workers' saves, filled with garbage. */
static void *new_saves(struct run *run, struct weir_persistent *hidden)
{
	const struct ptx_dim *block = &run->problem->block;
	uint8_t *saves;

	hidden->save_stride =
		(run->save_fixed + (uint64_t)run->save_per_thread * block->x * block->y * block->z +
		 run->problem->dynamic_shared + 255) /
		256 * 256;
	saves = aligned_alloc(256, hidden->save_stride * WORKERS_MAX + 256);
	if (saves)
		memset(saves, 1, hidden->save_stride * WORKERS_MAX);
	hidden->saves = (uintptr_t)saves;
	return saves;
}

bool run_persistent(struct run *run, enum weir_form form, uint32_t *out)
{
	/* Nanoseconds: blocks are never finished, sometimes, or always if other tickets tell. */
	static const uint32_t drains[] = {0, 50000, 1u << 30}, calls[] = {0, 1, 40};
	static const uint32_t looks[] = {0, WEIR_LOOK, 2 * WEIR_LOOK};
	struct ptx_dim grid = run->problem->grid;
	struct weir_words *words = aligned_alloc(32, sizeof(*words));
	struct weir_report report;
	struct asked asked = {0};
	struct weir_persistent hidden = {
		.words = (uintptr_t)words,
		.demand = (uintptr_t)&asked.demand,
		.hold = random_below(&run->random, 2) ? (uintptr_t)&asked.hold : 0,
		.grid = {grid.x, grid.y, grid.z},
		.blocks = (uint32_t)blocks_of(grid),
		.report = (uintptr_t)&report,
		.period = random_below(&run->random, 3) * 10000};
	void *saves = new_saves(run, &hidden);
	bool good = words && saves;

	if (good)
		memset(words, 0, sizeof(*words));
	for (hidden.serial = 1; good && hidden.serial <= 2; hidden.serial++) {
		out = launch_results(run, out);
		hidden.ahead = form == WEIR_PERSISTENT && random_below(&run->random, 2);
		hidden.room = random_below(&run->random, 2) ? (uintptr_t)&asked.sms : 0;
		asked.sms = random_sms(run);
		asked.any = random_below(&run->random, 4);
		hidden.quota = weir_quota(random_below(&run->random, 2) ? asked.sms : 0);
		weir_cut(&hidden, 1 + random_below(&run->random, 2 + hidden.blocks / 3),
			 1 + random_below(&run->random, WORKERS_MAX),
			 (int)random_below(&run->random, 2),
			 hidden.room ? WEIR_TICKETS_IN_ROW
				     : (enum weir_ticket_order)random_below(&run->random, 2));
		hidden.fresh = random_below(&run->random, 2);
		hidden.drain = drains[random_below(&run->random, 3)];
		hidden.look = looks[random_below(&run->random, 3)];
		hidden.lead = random_below(&run->random, 2) * WEIR_LEAD;
		hidden.calls = calls[random_below(&run->random, 3)];
		good = run_until_done(run, form, out, words, &hidden, &asked) &&
		       launch_agrees(run, weir_form_name(form), out);
	}
	run->evictions += words ? words->evictions : 0;
	free(words);
	free(saves);
	return good;
}

bool run_asked(struct run *run, uint32_t n_long, uint32_t took, uint32_t drain,
	       struct weir_words *words)
{
	const uint32_t kind = 7;
	_Alignas(32) struct weir_words own = {0};
	uint64_t demand = 1;
	struct ptx_dim grid = run->problem->grid;
	struct weir_persistent hidden = {.words = (uintptr_t)&own,
					 .demand = (uintptr_t)&demand,
					 .grid = {grid.x, grid.y, grid.z},
					 .blocks = (uint32_t)blocks_of(grid),
					 .serial = 1,
					 .fresh = 1,
					 .drain = drain,
					 .kind = kind};
	uint32_t *out = calloc(run->problem->out_words, sizeof(*out));
	uint8_t *saves = new_saves(run, &hidden);
	struct launch launch = {.run = run, .error = -ENOMEM};

	if (out && saves) {
		for (size_t i = 0; took && i < SAVED_TICKETS; i++) {
			/* Of one block; 1 cycle is 1 ns. */
			uint32_t ticket[] = {kind + 1, i < n_long ? took : 1};
			memcpy(saves + SAVED_TICKETS_AT + i * sizeof(ticket), ticket,
			       sizeof(ticket));
		}
		weir_cut(&hidden, 1, 1, true, WEIR_TICKETS_IN_ROW);
		launch_init(&launch, run, WEIR_RESUMABLE, out, &hidden, sizeof(hidden));
		launch.ptx.grid = (struct ptx_dim){1, 1, 1};
		launch_blocks(&launch);
	}
	*words = own;
	free(saves);
	free(out);
	return launch_is_good(&launch, "asked");
}
