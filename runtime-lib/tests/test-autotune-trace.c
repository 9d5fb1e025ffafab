/* Recorded traces, at which the autotuner must decide as it did then.
 *
 * A trace (autotune-traces/NAME.trace) is what the autotuner was told of one kernel after another;
 * NAME.want is what it decided, with the line of the trace. A decision is listed when it differs
 * from the one before. `test-autotune-trace NAME.trace` prints the decisions for a new .want.
 *
 *	settings LATENCY given|default FORM|any CHUNK     a new kernel begins
 *	kernel X Y Z NS                                   its grid and first native time
 *	unknown X Y Z                                     the same of one that was never launched
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

static void do_unknown(struct replay *r, char *words)
{
	unsigned grid[3];

	assert_int_equal(sscanf(words, "%u %u %u", &grid[0], &grid[1], &grid[2]), 3);
	autotune_init_unknown(&r->tuner, &r->settings, grid, r->at.now);
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
	{"settings", do_settings}, {"kernel", do_kernel},
	{"unknown", do_unknown},   {"client", do_client},
	{"launch", do_launch},     {"refused", do_refused},
	{"evicted", do_evicted},   {"not-launched", do_not_launched},
	{"sample", do_sample},     {"runs", do_runs},
	{"forms", do_forms},       {"resume", do_resume},
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

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_lead_to_the_same_decisions),
	};

	if (argc == 2) {
		replay(argv[1], stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
