/* Finding a library of the driver behind our own SONAME, by which the loader answers with us: it
 * must be opened by its absolute path. Searched like the loader does: $LD_LIBRARY_PATH, the
 * loader's cache, then the folders where drivers are known to lie. @path: room for PATH_MAX. */
#pragma once

#include <stdbool.h>

/* The first library called @name that is not the one which asks. False: none. */
bool search_library(char *path, const char *name);
/* That very file, if it is one and not ours. */
bool search_given(char *path, const char *given);
/* @name in the folder of the file @neighbour. */
bool search_beside(char *path, const char *name, const char *neighbour);
