/* Strings to unique pointers: two names are the same if their pointers are. */
#pragma once

#include "syntax/arena.h"

#include <stdint.h>

struct intern_entry;

struct intern {
	struct arena *arena; /* where the strings live */
	struct intern_entry **buckets;
	size_t n, room; /* room is a power of two */
};

void intern_init(struct intern *intern, struct arena *arena);

/* The one copy of @text, NUL-terminated; NULL: no memory. */
const char *intern_text(struct intern *intern, const char *text, size_t len);
const char *intern_string(struct intern *intern, const char *text);

/* The copy if there is one already, else NULL. */
const char *intern_find(const struct intern *intern, const char *text, size_t len);

/* Room for @size bytes of a string, for one who knows that it is like no other: it is in no table,
 * so nobody finds it, and lives in @arena. NULL: no memory. */
char *intern_unlisted(struct arena *arena, size_t size);

/* A place for whatever belongs to the string, NULL at first; @text must come from above. */
void **intern_slot(const char *text);
