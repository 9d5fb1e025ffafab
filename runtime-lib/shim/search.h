/* Finds the absolute path of a real library that has our own SONAME, by which the loader would find
 * us. The order is the loader's: $LD_LIBRARY_PATH, the loader's cache, then folders where drivers
 * usually lie. @path: room for PATH_MAX. */
#pragma once

#include <stdbool.h>

/* The first library called @name that is not ours. False: none. */
bool search_library(char *path, const char *name);
/* The file @given, if it is one and not ours. */
bool search_given(char *path, const char *given);
/* @name in the folder of the file @neighbour. */
bool search_beside(char *path, const char *name, const char *neighbour);
