/* Shared by suffix.cu and its host. */
#pragma once

#define SUFFIX_QUERY   64 /* bases of a query */
#define SUFFIX_THREADS 128
/* A result: the length of the longest match in the upper bits, a place in the text below. */
#define SUFFIX_PLACE_BITS 24
