#include "policy/yield.h"

#include <stdio.h>
#include <string.h>

#include "weir/units.h"

#include "weir/protocol.h"

#define MORE "needed+"

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

bool yield_parse(const char *text, uint32_t *out)
{
	if (strncmp(text, MORE, strlen(MORE)) == 0)
		return parse_percent(text + strlen(MORE), out);
	bool needed = strcmp(text, "needed") == 0;
	if (!needed && strcmp(text, "whole") != 0)
		return false;
	*out = needed ? YIELD_NEEDED : YIELD_WHOLE;
	return true;
}

const char *yield_format(uint32_t yield, char out[YIELD_TEXT_MAX])
{
	if (yield > YIELD_NEEDED)
		snprintf(out, YIELD_TEXT_MAX, MORE "%u%%", (yield - YIELD_NEEDED) % 1000);
	else
		snprintf(out, YIELD_TEXT_MAX, "%s", yield ? "needed" : "whole");
	return out;
}
