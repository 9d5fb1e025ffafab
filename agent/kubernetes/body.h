/* Received bytes, up to a limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Zero: none. */
struct body {
	char *text;
	size_t n, room;
};

/* False: there would be more than @max bytes, or no memory. */
bool body_add(struct body *body, const char *text, size_t n, size_t max);
void body_clear(struct body *body);
void body_deinit(struct body *body);
