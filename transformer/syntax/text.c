#include "syntax/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN  4096u
#define PRINT_MAX 256 /* characters of one text_print; longer pieces go through text_string */

void text_init(struct text *text, size_t max)
{
	*text = (struct text){.max = max};
}

void text_deinit(struct text *text)
{
	free(text->data);
	*text = (struct text){0};
}

/* Makes room for @len more bytes and a NUL. */
static bool reserve(struct text *text, size_t len)
{
	size_t room = text->room ? text->room : ROOM_MIN;
	char *data;

	if (text->error)
		return false;
	if (len > text->max - text->len) {
		text->error = -EFBIG;
		return false;
	}
	if (text->len + len < text->room)
		return true;
	while (room <= text->len + len)
		room *= 2;
	data = realloc(text->data, room);
	if (!data) {
		text->error = -ENOMEM;
		return false;
	}
	text->data = data;
	text->room = room;
	return true;
}

void text_add(struct text *text, const char *data, size_t len)
{
	if (!reserve(text, len))
		return;
	memcpy(text->data + text->len, data, len);
	text->len += len;
	text->data[text->len] = '\0';
}

void text_string(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

void text_row(struct text *text, const char *const *strings)
{
	for (; *strings; strings++)
		text_string(text, *strings);
}

void text_print(struct text *text, const char *format, ...)
{
	char piece[PRINT_MAX];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	if (n < 0 || n >= PRINT_MAX)
		text->error = text->error ? text->error : -EFBIG;
	else
		text_add(text, piece, (size_t)n);
}

char *text_take(struct text *text)
{
	char *data;

	text_add(text, "", 0); /* an empty text is a string, too */
	data = text->error ? NULL : text->data;
	if (!data)
		free(text->data);
	text->data = NULL;
	text->len = text->room = 0;
	return data;
}
