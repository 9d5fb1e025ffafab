/* Requests that came to nothing, and would again: every process that starts asks anew, and some
 * take all the time that they may. Remembered as long as the agent lives, up to a limit. */
#pragma once

#include <stdint.h>
#include <uthash.h>

#include "common/async-hash.h"

#include "weir/protocol.h"

#define FAILURES_MAX 256

struct failure {
	struct digest key;
	enum weir_compile_status status;
	char text[sizeof(((struct weir_compiled *)0)->text)];
	UT_hash_handle hh;
	struct failure *prev, *next; /* the oldest first */
};

struct failures {
	struct failure *all, *by_age;
};

/* NULL: none is known. */
const struct failure *failures_find(const struct failures *failures, const struct digest *key);
/* Without memory it is not remembered. */
void failures_add(struct failures *failures, const struct digest *key,
		  enum weir_compile_status status, const char *text);
void failures_deinit(struct failures *failures);
