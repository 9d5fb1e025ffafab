/* How soon a loop's kernel leaves when higher-level clients get work: from the moment that the
 * demand word, which it looks at, is set until its last block has told the host. A program may
 * watch one loop after the other; their figures add up. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include <weir/loop.h>

#include "host.h"

#define LEAVES_MAX 10000

struct leaves {
	bool wanted; /* else nothing is watched, and there are no figures */
	struct weir_loop *loop;
	CUcontext context;
	_Atomic(const uint64_t *) demand; /* NULL: not known yet */
	uint64_t mask;
	_Atomic int over;
	pthread_t thread;
	uint64_t ns[LEAVES_MAX];
	size_t n, missed; /* missed: demand that ended before the kernel left */
};

/* Starts to watch @loop, which is about to run. One processor is busy with it. */
void leaves_begin(struct leaves *leaves, struct weir_loop *loop);
/* The loop has ended, and is not freed yet. */
void leaves_end(struct leaves *leaves);
/* To stdout: members of a JSON object. */
void leaves_print(const struct leaves *leaves);
