/* The dynamic loader's cache, /etc/ld.so.cache in format 1.1: which file a library's name stands
 * for. Its bytes are the container's, and trusted in nothing. */
#pragma once

#include <stddef.h>

/* The path of the next x86-64 library called @name among the cache's @size bytes, from entry *@at
 * on, which begins at 0 and moves on. NULL: there is none any more. */
const char *loader_cache_next(const char *bytes, size_t size, const char *name, size_t *at);
