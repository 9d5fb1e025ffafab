/* One run of weir-compile: started with a client's file, and watched until it ends or its time is
 * up. Its result is a file that nobody else has, and that is not checked yet. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "weir/loop.h"

struct helper_program {
	int fd; /* of weir-compile */
	bool machine_code;
	uint32_t memory_mib, seconds;
};

enum helper_outcome {
	HELPER_DONE,    /* the result may be an object */
	HELPER_REFUSED, /* from here on the result may be a line of text */
	HELPER_FAILED,  /* the compiler refuses the kernel */
	HELPER_TIME,
	HELPER_MEMORY, /* or a file too large */
	HELPER_CRASH,
	HELPER_KILLED, /* not by the agent */
	HELPER_TROUBLE,
	HELPER_OUTCOMES,
};

struct helper;
/* The process is gone; the result stays until helper_stop(). */
typedef void helper_ended_fn(struct helper *helper, enum helper_outcome outcome);

/* To be embedded. */
struct helper {
	struct loop_io death;
	struct loop_timer deadline;
	pid_t pid; /* 0: no process */
	int process, result;
	bool late;
	helper_ended_fn *ended;
};

/* @request stays the caller's. */
int helper_start(struct helper *helper, struct loop *loop, const struct helper_program *program,
		 int request, helper_ended_fn *ended);
/* Kills it, if it runs. It ends as HELPER_KILLED later, or as what it became just before. */
void helper_kill(const struct helper *helper);
/* Kills it if it runs; frees the result. Accepts a zeroed one. */
void helper_stop(struct helper *helper);

/* Short names, for metrics. */
const char *helper_outcome_name(enum helper_outcome outcome);
