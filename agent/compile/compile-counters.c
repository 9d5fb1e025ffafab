#include "compile/compile-counters.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const double compile_buckets[COMPILE_BUCKETS] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};

void compile_clean(char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text))
			*text = ' ';
}

static void count_reason(struct compile_counters *counters, enum weir_form form, const char *reason)
{
	char text[COMPILE_REASON_SIZE];

	snprintf(text, sizeof(text), "%s", reason);
	compile_clean(text);
	for (unsigned i = 0; i < counters->n_reasons; i++) {
		if (counters->reasons[i].form == form &&
		    strcmp(counters->reasons[i].text, text) == 0) {
			counters->reasons[i].n++;
			return;
		}
	}
	if (counters->n_reasons == COMPILE_REASONS_MAX) {
		counters->other_reasons++;
		return;
	}
	struct compile_reason *fresh = &counters->reasons[counters->n_reasons++];
	*fresh = (struct compile_reason){.form = form, .n = 1};
	memcpy(fresh->text, text, sizeof(text));
}

void compile_count_refusals(struct compile_counters *counters, const struct weir_object *object)
{
	const char *bytes = (const void *)object;
	const struct weir_object_form *forms = (const void *)(bytes + object->forms);

	for (uint32_t i = 0; i < object->n_forms && i < WEIR_FORM_COUNT; i++)
		if (!forms[i].entry && forms[i].form < WEIR_FORM_COUNT)
			count_reason(counters, (enum weir_form)forms[i].form,
				     bytes + forms[i].reason);
}

void compile_count_time(struct compile_counters *counters, uint64_t nanoseconds)
{
	counters->nanoseconds += nanoseconds;
	for (int i = 0; i < COMPILE_BUCKETS; i++)
		if ((double)nanoseconds <= compile_buckets[i] * 1e9)
			counters->buckets[i]++;
}
