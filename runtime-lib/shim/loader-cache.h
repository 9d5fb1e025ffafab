/* The dynamic loader's cache, /etc/ld.so.cache in format 1.1: which file a library's name means.
 * Its bytes come from the container and are not trusted. */
#pragma once

#include <stddef.h>

/* The path of the next library for this processor called @name in the cache's @size bytes, from
 * entry *@at on, which begins at 0. NULL: no more. */
const char *loader_cache_next(const char *bytes, size_t size, const char *name, size_t *at);
