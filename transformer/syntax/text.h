/* An output buffer with a maximum. An error is kept, so a writer may check once at the end. */
#pragma once

#include <stddef.h>

struct text {
	char *data; /* NUL-terminated, NULL while empty */
	size_t len, room, max;
	int error; /* 0, -ENOMEM, -EFBIG */
};

void text_init(struct text *text, size_t max);
void text_deinit(struct text *text);

void text_add(struct text *text, const char *data, size_t len);
void text_string(struct text *text, const char *string);
/* Adds strings up to a NULL; the macro brings the NULL. */
void text_row(struct text *text, const char *const *strings);
#define text_strings(text, ...) text_row(text, (const char *const[]){__VA_ARGS__, NULL})
void text_print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Passes ownership of the buffer to the caller. NULL: an error occurred. */
char *text_take(struct text *text);
