/* Annotation before PriorityClass before QoS class, and which namespaces may raise. */
#include "scheduler/level.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char gold[] = "gold", dirt[] = "dirt", trusted[] = "trusted", system_[] = "system";
static struct config_class classes[] = {{gold, 3}, {dirt, 0}};
static char *raise_in[] = {trusted, system_};
static const struct config_levels config = {
	.by_default = 1,
	.best_effort = 0,
	.burstable = 1,
	.guaranteed = 2,
	.n_classes = 2,
	.classes = classes,
	.n_raise = 2,
	.raise = raise_in,
};

static const struct {
	struct level_input input;
	uint8_t level;
	bool refused;
	const char *reason;
} cases[] = {
	/* QoS class alone, the pod known or not */
	{{NULL, NULL, NULL, CONTAINER_QOS_BEST_EFFORT, false}, 0, false, "QoS class BestEffort"},
	{{NULL, NULL, NULL, CONTAINER_QOS_BURSTABLE, true}, 1, false, "QoS class Burstable"},
	{{"", "any", "", CONTAINER_QOS_GUARANTEED, true}, 2, false, "QoS class Guaranteed"},
	{{NULL, NULL, NULL, CONTAINER_QOS_NONE, false}, 1, false, "default"},
	/* PriorityClass beats it, if it is mapped */
	{{NULL, "any", "gold", CONTAINER_QOS_BEST_EFFORT, true}, 3, false, "PriorityClass gold"},
	{{NULL, "any", "dirt", CONTAINER_QOS_GUARANTEED, true}, 0, false, "PriorityClass dirt"},
	{{NULL, "any", "wood", CONTAINER_QOS_GUARANTEED, true}, 2, false, "QoS class Guaranteed"},
	/* the annotation beats both; lowering is always allowed */
	{{"low", "any", "gold", CONTAINER_QOS_GUARANTEED, true}, 0, false, "annotation low"},
	{{"high", "any", NULL, CONTAINER_QOS_GUARANTEED, true}, 2, false, "annotation high"},
	{{"normal", "any", "gold", CONTAINER_QOS_BEST_EFFORT, true}, 1, false, "annotation normal"},
	/* raising is not */
	{{"high", "any", NULL, CONTAINER_QOS_BEST_EFFORT, true},
	 0,
	 true,
	 "annotation high refused"},
	{{"critical", NULL, NULL, CONTAINER_QOS_GUARANTEED, true}, 2, true, "refused"},
	{{"high", "trusted", NULL, CONTAINER_QOS_BEST_EFFORT, true}, 2, false, "annotation high"},
	{{"critical", "system", "dirt", CONTAINER_QOS_NONE, true}, 3, false, "annotation critical"},
	{{"high", "trusted2", "dirt", CONTAINER_QOS_NONE, true}, 0, true, "refused"},
	/* invalid annotations */
	{{"HIGH", "trusted", NULL, CONTAINER_QOS_BURSTABLE, true}, 1, false, "HIGH is no level"},
	{{"2", "trusted", "gold", CONTAINER_QOS_BURSTABLE, true}, 3, false, "2 is no level"},
	/* of an unknown pod only the QoS class counts */
	{{"critical", "trusted", "gold", CONTAINER_QOS_BEST_EFFORT, false}, 0, false, "BestEffort"},
};

static void decides(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct level_decision decision;
		level_decide(&decision, &config, &cases[i].input);
		assert_int_equal(decision.level, cases[i].level);
		assert_int_equal(decision.annotation_refused, cases[i].refused);
		assert_non_null(strstr(decision.reason, cases[i].reason));
	}
}

static void cuts_long_words(void **state)
{
	struct level_decision decision;
	char word[400];

	(void)state;
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	level_decide(&decision, &config,
		     &(struct level_input){word, word, word, CONTAINER_QOS_BURSTABLE, true});
	assert_int_equal(decision.level, 1);
	assert_true(strlen(decision.reason) < sizeof(decision.reason));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decides),
		cmocka_unit_test(cuts_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
