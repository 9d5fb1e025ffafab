/* Text from elsewhere, as UTF-8: who reads JSON or metrics may refuse all of it for one wrong byte.
 * Names of cgroups are what users like, and what is too long is cut at any byte. Pure. */
#pragma once

#include <stddef.h>

/* How many bytes the character has that @text begins with, which is not empty. 0: it is none. */
size_t text_character(const char *text);
/* Puts `?` for each byte that belongs to no character. */
void text_mend(char *text);
