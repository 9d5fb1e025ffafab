/* Unique strings: equal names have equal pointers. */
#pragma once

#include "syntax/arena.h"

#include <stdint.h>

struct intern_entry;

struct intern {
	struct arena *arena; /* owns the strings */
	struct intern_entry **buckets;
	size_t n, room; /* room is a power of two */
};

void intern_init(struct intern *intern, struct arena *arena);

/* The unique copy of @text, NUL-terminated. */
const char *intern_text(struct intern *intern, const char *text, size_t len);
const char *intern_string(struct intern *intern, const char *text);

/* The copy if it exists, else NULL. */
const char *intern_find(const struct intern *intern, const char *text, size_t len);

/* Space for a string of @size bytes that the caller knows to be unique. It is in no table, so
 * nothing finds it. */
char *intern_unlisted(struct arena *arena, size_t size);

/* A pointer that belongs to an interned string; NULL at first. */
void **intern_slot(const char *text);
