#include "policy/yield.h"

#include <stdio.h>
#include <string.h>

#include "weir/units.h"

#define MORE "needed+"

static const struct {
	const char *text;
	uint32_t yield;
} words[] = {
	{"auto", YIELD_AUTO},
	{"whole", YIELD_WHOLE},
	{"needed", YIELD_NEEDED},
};

/* @text: `N%`. */
static bool parse_percent(const char *text, uint32_t *out)
{
	size_t n = strlen(text);
	char digits[8];
	uint64_t percent;

	if (n < 2 || n > sizeof(digits) || text[n - 1] != '%')
		return false;
	memcpy(digits, text, n - 1);
	digits[n - 1] = '\0';
	if (!number_parse(digits, 0, WEIR_YIELD_MORE_MAX, &percent))
		return false;
	*out = YIELD_NEEDED + (uint32_t)percent;
	return true;
}

static bool parse_sms(const char *text, uint32_t *out)
{
	uint64_t sms;

	if (!number_parse(text, 1, WEIR_YIELD_NUMBER_MAX, &sms))
		return false;
	*out = WEIR_YIELD_NUMBER + (uint32_t)sms;
	return true;
}

bool yield_parse(const char *text, uint32_t *out)
{
	if (strncmp(text, MORE, strlen(MORE)) == 0)
		return parse_percent(text + strlen(MORE), out);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i].text) == 0) {
			*out = words[i].yield;
			return true;
		}
	}
	return parse_sms(text, out);
}

uint64_t yield_sms(uint32_t yield, uint64_t sms)
{
	if (yield > WEIR_YIELD_NUMBER)
		return yield - WEIR_YIELD_NUMBER;
	return sms + (sms * (yield - YIELD_NEEDED) + 99) / 100;
}

const char *yield_format(uint32_t yield, char out[YIELD_TEXT_MAX])
{
	if (yield > WEIR_YIELD_NUMBER)
		snprintf(out, YIELD_TEXT_MAX, "%u", (yield - WEIR_YIELD_NUMBER) % 10000);
	else
		snprintf(out, YIELD_TEXT_MAX, MORE "%u%%", (yield - YIELD_NEEDED) % 1000);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (yield == words[i].yield)
			snprintf(out, YIELD_TEXT_MAX, "%s", words[i].text);
	}
	return out;
}

static const char *const found_names[] = {
	[WEIR_YIELDS_UNKNOWN] = "unknown",
	[WEIR_YIELDS_PLACES] = "places",
	[WEIR_YIELDS_SMS] = "sms",
	[WEIR_YIELDS_WHOLE] = "whole",
};
#define FOUND_NAMES (sizeof(found_names) / sizeof(found_names[0]))

const char *yield_found_name(uint32_t found)
{
	return found_names[found < FOUND_NAMES ? found : WEIR_YIELDS_UNKNOWN];
}

bool yield_found_parse(const char *name, uint32_t *out)
{
	for (uint32_t i = 0; i < FOUND_NAMES; i++) {
		if (strcmp(name, found_names[i]) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}
