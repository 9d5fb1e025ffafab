/* Repairs UTF-8 in text from outside. Readers of JSON or metrics may refuse the whole text because
 * of one wrong byte; names of cgroups may contain any byte, and may be cut inside a character.
 * Pure. */
#pragma once

#include <stddef.h>

/* The length in bytes of the first character of @text, which is not empty. 0: malformed. */
size_t text_character(const char *text);
/* Replaces each byte that belongs to no character by `?`. */
void text_mend(char *text);
