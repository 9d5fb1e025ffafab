#include "common/text.h"

#include "weir/base.h"

/* Well-formed characters of several bytes: for each range of first bytes, the range of the second.
 * This excludes overlong forms, surrogates, and values beyond U+10FFFF. */
static const struct {
	unsigned char first, last;
	unsigned char low, high;
	size_t n;
} rows[] = {
	{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
	{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
	{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static bool is_within(unsigned char c, unsigned char low, unsigned char high)
{
	return c >= low && c <= high;
}

size_t text_character(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t n = 0;

	if (*at < 0x80)
		return 1;
	for (size_t i = 0; i < countof(rows); i++)
		if (is_within(at[0], rows[i].first, rows[i].last) &&
		    is_within(at[1], rows[i].low, rows[i].high))
			n = rows[i].n;
	/* A NUL ends the loop. */
	for (size_t i = 2; i < n; i++)
		if (!is_within(at[i], 0x80, 0xbf))
			return 0;
	return n;
}

void text_mend(char *text)
{
	while (*text) {
		size_t n = text_character(text);
		if (n == 0)
			*text = '?';
		text += n ? n : 1;
	}
}
