/* The autotuner alone: its thresholds; and recorded traces, at which it must decide as it did then.
 *
 * A trace (autotune-traces/NAME.trace) is what the autotuner was told of one kernel after another;
 * NAME.want is what it decided, with the line of the trace. A decision is listed when it differs
 * from the one before. `test-autotune-core NAME.trace` prints the decisions for a new .want.
 *
 *	settings LATENCY given|default FORM|any CHUNK     a new kernel begins
 *	kernel X Y Z NS                                   its grid and first native time
 *	client nobody|same-level|urgent MAX_BLOCKING lowest|above
 *	launch NATIVE TOO_SHORT [overtaken] [places]
 *	not-launched
 *	refused
 *	evicted EVICTIONS CHAIN
 *	+NS sample CANDIDATE NS [evicted] [disturbed] [crowded]
 *	+NS runs NS
 *	+NS forms SMS RESIDENT [straight] FORM/BUILD:RESIDENT:SAVE_STRIDE...
 *	+NS no-forms
 *	+NS resume
 *
 * +NS is the time since the line before with one. */
#include "autotune/autotune.h"
#include "autotune/autotune-candidates.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_MAX 256
#define TRACES   "runtime-lib/tests/autotune-traces"

struct replay {
	struct autotune_settings settings;
	struct autotune_situation at;
	struct autotuner tuner;
	unsigned line;
	char launch[TEXT_MAX], state[TEXT_MAX]; /* the last decisions */
	FILE *decisions;
};

static enum weir_form form_of(const char *name)
{
	enum weir_form form = WEIR_NATIVE;

	while (form < WEIR_FORM_COUNT && strcmp(name, form_name(form)) != 0)
		form++;
	return form;
}

static void tell(struct replay *r, char last[TEXT_MAX], const char *decision)
{
	if (strcmp(last, decision) != 0)
		fprintf(r->decisions, "%u %s\n", r->line, decision);
	snprintf(last, TEXT_MAX, "%s", decision);
}

static const char *config_text(const struct launch_config *c, char text[128])
{
	int n = sprintf(text, "%s/%u", form_name(c->form), c->build);

	if (c->form == WEIR_SLICED)
		sprintf(text + n, " step %u axis %u", c->step, c->axis);
	else if (c->form != WEIR_NATIVE)
		sprintf(text + n, " chunk %u%s%s workers %u tickets %u/%u/%u", c->hidden.chunk,
			c->hidden.ahead ? " ahead" : "", c->hidden.across > 1 ? " apart" : "",
			c->workers, c->hidden.coarse, c->hidden.single, c->hidden.tickets);
	return text;
}

static void tell_state(struct replay *r)
{
	static const char *const states[] = {"wanted", "comparing", "settled"},
				 *const needs[] = {"", ", needs forms", ", needs resume"};
	const struct autotuner *t = &r->tuner;
	char state[TEXT_MAX], config[128];

	snprintf(state, sizeof(state),
		 "%s%s, in use %u %u %u (%s), chain %u, postponed %u, native %llu, best %.4f%s",
		 states[t->state],
		 t->state == AUTOTUNE_COMPARING && !t->comparing ? " nothing" : "", t->in_use[0],
		 t->in_use[1], t->in_use[2],
		 config_text(&t->candidates[t->in_use[0]].config, config), t->chain, t->postponed,
		 (unsigned long long)t->native, t->best_ratio, needs[autotune_need(t, &r->at)]);
	tell(r, r->state, state);
}

static void do_settings(struct replay *r, char *words)
{
	char given[16], form[16];
	unsigned long long latency;

	assert_int_equal(
		sscanf(words, "%llu %15s %15s %u", &latency, given, form, &r->settings.chunk), 4);
	r->settings.latency = latency;
	r->settings.latency_given = strcmp(given, "given") == 0;
	r->settings.forced = form_of(form);
	r->at = (struct autotune_situation){.now = 1};
	r->launch[0] = r->state[0] = '\0';
}

static void do_kernel(struct replay *r, char *words)
{
	unsigned grid[3];
	unsigned long long ns;

	assert_int_equal(sscanf(words, "%u %u %u %llu", &grid[0], &grid[1], &grid[2], &ns), 4);
	autotune_init(&r->tuner, &r->settings, grid, ns, r->at.now);
}

static void do_client(struct replay *r, char *words)
{
	char waiting[16], level[16];
	unsigned long long most;

	assert_int_equal(sscanf(words, "%15s %llu %15s", waiting, &most, level), 3);
	r->at.waiting = waiting[0] == 'n'   ? WAITING_NOBODY
			: waiting[0] == 's' ? WAITING_SAME_LEVEL
					    : WAITING_URGENT;
	r->at.max_blocking_time = most;
	r->at.lowest_level = strcmp(level, "lowest") == 0;
}

static void do_launch(struct replay *r, char *words)
{
	unsigned long long native, too_short;
	char decision[TEXT_MAX];

	assert_int_equal(sscanf(words, "%llu %llu", &native, &too_short), 2);
	struct autotune_launch launch = {.native = native,
					 .short_alone = too_short,
					 .short_waited = too_short,
					 .overtaken = strstr(words, "overtaken") != NULL,
					 .places = strstr(words, "places") != NULL};
	struct launch_decision d = autotune_decide(&r->tuner, &r->at, &launch);
	snprintf(decision, sizeof(decision), "launch %u%s%s%s%s chain %u", d.candidate,
		 d.sample ? " sample" : "", d.forms ? " forms" : "", d.yields ? " yields" : "",
		 d.places ? " places" : "", d.chain);
	tell(r, r->launch, decision);
}

static void do_not_launched(struct replay *r, char *words)
{
	(void)words;
	autotune_not_launched(&r->tuner);
}

static void do_refused(struct replay *r, char *words)
{
	(void)words;
	autotune_refused(&r->tuner);
}

static void do_evicted(struct replay *r, char *words)
{
	unsigned evictions, chain;

	assert_int_equal(sscanf(words, "%u %u", &evictions, &chain), 2);
	autotune_evicted(&r->tuner, evictions, chain);
	tell_state(r);
}

static void do_sample(struct replay *r, char *words)
{
	struct autotune_sample sample = {.evicted = strstr(words, "evicted") != NULL,
					 .disturbed = strstr(words, "disturbed") != NULL,
					 .crowded = strstr(words, "crowded") != NULL};
	unsigned long long ns;

	assert_int_equal(sscanf(words, "%u %llu", &sample.candidate, &ns), 2);
	sample.ns = ns;
	autotune_sample(&r->tuner, &r->at, &sample);
	tell_state(r);
}

static void do_runs(struct replay *r, char *words)
{
	autotune_runs(&r->tuner, strtoull(words, NULL, 10), r->at.now);
}

static void do_forms(struct replay *r, char *words)
{
	struct kernel_facts facts = {0};
	char *left, name[16], config[128];

	facts.sms = (uint32_t)strtoul(words, &left, 10);
	facts.resident = (uint32_t)strtoul(left, &left, 10);
	for (char *word = strtok(left, " "); word; word = strtok(NULL, " ")) {
		unsigned build, resident;
		unsigned long long stride;
		if (strcmp(word, "straight") == 0) {
			facts.is_straight = true;
			continue;
		}
		assert_int_equal(
			sscanf(word, "%15[a-z]/%u:%u:%llu", name, &build, &resident, &stride), 4);
		assert_true(form_of(name) < WEIR_FORM_COUNT && build < BUILDS_MAX);
		facts.builds[form_of(name)][build] =
			(struct build_facts){.resident = resident, .save_stride = stride};
	}
	autotune_forms(&r->tuner, &r->at, &facts);
	for (size_t i = r->tuner.first; i < r->tuner.n; i++)
		fprintf(r->decisions, "%u candidate %zu %s\n", r->line, i,
			config_text(&r->tuner.candidates[i].config, config));
	tell_state(r);
}

static void do_no_forms(struct replay *r, char *words)
{
	(void)words;
	autotune_no_forms(&r->tuner, "the trace says so");
	tell_state(r);
}

static void do_resume(struct replay *r, char *words)
{
	(void)words;
	autotune_resume(&r->tuner, &r->at);
	tell_state(r);
}

static const struct {
	const char *word;
	void (*event)(struct replay *r, char *words);
} events[] = {
	{"settings", do_settings},
	{"kernel", do_kernel},
	{"client", do_client},
	{"launch", do_launch},
	{"refused", do_refused},
	{"evicted", do_evicted},
	{"not-launched", do_not_launched},
	{"sample", do_sample},
	{"runs", do_runs},
	{"forms", do_forms},
	{"resume", do_resume},
	{"no-forms", do_no_forms},
};

static void do_line(struct replay *r, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (!*line || *line == '#')
		return;
	if (*line == '+')
		r->at.now += strtoull(line + 1, &line, 10);
	line += strspn(line, " ");
	size_t n = strcspn(line, " ");
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
		if (strlen(events[i].word) == n && strncmp(events[i].word, line, n) == 0) {
			events[i].event(r, line + n);
			return;
		}
	}
	fail_msg("line %u: unknown event %s", r->line, line);
}

static void replay(const char *path, FILE *decisions)
{
	struct replay *r = calloc(1, sizeof(*r));
	FILE *trace = fopen(path, "r");
	char line[512];

	assert_non_null(r);
	assert_non_null(trace);
	r->decisions = decisions;
	while (fgets(line, sizeof(line), trace)) {
		r->line++;
		do_line(r, line);
	}
	fclose(trace);
	free(r);
}

/* Line by line, to say which decision is another one. */
static void compare(const char *path, FILE *decisions)
{
	FILE *wants = fopen(path, "r");
	char decided[512], wanted[512];

	assert_non_null(wants);
	rewind(decisions);
	while (fgets(decided, sizeof(decided), decisions)) {
		if (!fgets(wanted, sizeof(wanted), wants))
			fail_msg("%s: not wanted: %s", path, decided);
		if (strcmp(decided, wanted) != 0)
			fail_msg("%s: decided %s instead of %s", path, decided, wanted);
	}
	assert_null(fgets(wanted, sizeof(wanted), wants));
	fclose(wants);
}

static void traces_lead_to_the_same_decisions(void **state)
{
	DIR *folder = opendir(TRACES);
	struct dirent *entry;
	unsigned traces = 0;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char trace[512], want[512], *dot = strrchr(entry->d_name, '.');
		if (strcmp(dot, ".trace") != 0)
			continue;
		int n = (int)(dot - entry->d_name);
		snprintf(trace, sizeof(trace), TRACES "/%s", entry->d_name);
		snprintf(want, sizeof(want), TRACES "/%.*s.want", n, entry->d_name);
		FILE *decisions = tmpfile();
		assert_non_null(decisions);
		replay(trace, decisions);
		compare(want, decisions);
		fclose(decisions);
		traces++;
	}
	closedir(folder);
	assert_true(traces >= 20);
}

/* A kernel that is launched for ever, with a persistent form. */
struct model {
	struct autotuner *tuner;
	struct autotune_situation at;
	uint64_t native; /* ns */
	double ratio;    /* of the form */
	bool impossible; /* no launch in the form can be made */
	unsigned natives, forms;
};

static const struct autotune_settings usual = {.latency = LATENCY_NS, .forced = WEIR_FORM_COUNT};

static void model_begin(struct model *m, enum waiting waiting, uint64_t native, double ratio)
{
	static const unsigned grid[3] = {100000, 1, 1};
	struct kernel_facts facts = {.sms = 4, .resident = 32};

	facts.builds[WEIR_PERSISTENT][0].resident = 32;
	*m = (struct model){.tuner = calloc(1, sizeof(*m->tuner)),
			    .at = {.now = 1, .waiting = waiting, .lowest_level = true},
			    .native = native,
			    .ratio = ratio};
	assert_non_null(m->tuner);
	autotune_init(m->tuner, &usual, grid, native, 1);
	autotune_forms(m->tuner, &m->at, &facts);
}

static void model_launch(struct model *m)
{
	struct autotune_launch launch = {.native = m->native};
	struct launch_decision d = autotune_decide(m->tuner, &m->at, &launch);
	bool form = d.config && !m->impossible;

	if (d.config && m->impossible)
		autotune_not_launched(m->tuner);
	m->natives += !form;
	m->forms += form;
	struct autotune_sample sample = {.candidate = form ? d.candidate : 0, .ns = m->native};
	if (form)
		sample.ns = (uint64_t)((double)m->native * m->ratio);
	m->at.now += sample.ns;
	autotune_sample(m->tuner, &m->at, &sample);
}

static void model_settle(struct model *m)
{
	while (m->tuner->state == AUTOTUNE_COMPARING)
		model_launch(m);
	assert_int_equal(m->tuner->state, AUTOTUNE_SETTLED);
}

static void the_median_decides_and_the_smaller_of_two(void **state)
{
	static const uint64_t times[] = {7, 3, 5};
	struct candidate candidate = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		static const uint64_t wants[] = {7, 3, 5};
		candidate_add(&candidate, &(struct autotune_sample){.ns = times[i]});
		assert_int_equal(candidate_time(&candidate), wants[i]);
	}
}

static void overheads_have_limits(void **state)
{
	static const struct {
		enum waiting waiting;
		double ratio;
		bool used;
	} cases[] = {
		{WAITING_NOBODY, 1.015, true},    {WAITING_NOBODY, 1.025, false},
		{WAITING_SAME_LEVEL, 1.24, true}, {WAITING_SAME_LEVEL, 1.26, false},
		{WAITING_URGENT, 1.24, true},     {WAITING_URGENT, 1.26, false},
	};
	struct model m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		model_begin(&m, cases[i].waiting, 5000000, cases[i].ratio);
		model_settle(&m);
		assert_int_equal(m.tuner->in_use[cases[i].waiting] != 0, cases[i].used);
		free(m.tuner);
	}
}

static void a_hopeless_candidate_is_launched_once(void **state)
{
	struct model m;

	(void)state;
	for (unsigned hopeless = 0; hopeless < 2; hopeless++) {
		model_begin(&m, WAITING_NOBODY, 5000000, hopeless ? 1.55 : 1.45);
		while (m.tuner->in_use[WAITING_NOBODY] == 1)
			model_launch(&m);
		assert_true((m.forms == 1) == hopeless);
		free(m.tuner);
	}
}

/* Each of its native launches is what a higher-level client may find. */
static void hopeless_candidates_are_compared_with_few_native_launches_below_others(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_URGENT, 5000000, 3);
	assert_true(m.tuner->n > 2);
	model_settle(&m);
	assert_in_range(m.natives, 1, 2);
	assert_true(m.at.now >= m.natives * NATIVE_URGENT_NS);
	free(m.tuner);
}

static void a_form_that_is_never_launched_is_given_up(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_NOBODY, 5000000, 1);
	m.impossible = true;
	model_settle(&m);
	assert_int_equal(m.natives, 400);
	assert_int_equal(m.tuner->in_use[WAITING_NOBODY], 0);
	free(m.tuner);
}

/* Three samples within at least 0.2 s. */
static void a_kernel_that_stays_slower_is_tuned_again(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_NOBODY, 5000000, 1.4);
	model_settle(&m);
	m.native = 150000000;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(m.tuner->state, AUTOTUNE_SETTLED);
		model_launch(&m);
	}
	assert_int_equal(m.tuner->state, AUTOTUNE_WANTED);
	free(m.tuner);
}

static void a_chain_that_was_too_short_is_long_for_eight_launches(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_NOBODY, 5000000, 1);
	autotune_evicted(m.tuner, 3, 3);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(m.tuner->chain, 51);
		autotune_evicted(m.tuner, 0, 51);
	}
	assert_in_range(m.tuner->chain, 4, 15);
	free(m.tuner);
}

/* Records are used again for other kernels. */
static void a_reused_record_resumes_nothing(void **state)
{
	static const unsigned grid[3] = {1000, 1, 1};
	const struct autotune_situation at = {.now = 1};
	struct autotuner *tuner = calloc(1, sizeof(*tuner));

	(void)state;
	assert_non_null(tuner);
	autotune_init(tuner, &usual, grid, 1000000, 1);
	tuner->postponed = 3;
	autotune_init(tuner, &usual, grid, 1000000, 1);
	autotune_no_forms(tuner, "the test says so");
	assert_int_equal(autotune_need(tuner, &at), AUTOTUNE_NEEDS_NOTHING);
	free(tuner);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_lead_to_the_same_decisions),
		cmocka_unit_test(the_median_decides_and_the_smaller_of_two),
		cmocka_unit_test(overheads_have_limits),
		cmocka_unit_test(a_hopeless_candidate_is_launched_once),
		cmocka_unit_test(
			hopeless_candidates_are_compared_with_few_native_launches_below_others),
		cmocka_unit_test(a_form_that_is_never_launched_is_given_up),
		cmocka_unit_test(a_kernel_that_stays_slower_is_tuned_again),
		cmocka_unit_test(a_chain_that_was_too_short_is_long_for_eight_launches),
		cmocka_unit_test(a_reused_record_resumes_nothing),
	};

	if (argc == 2) {
		replay(argv[1], stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
