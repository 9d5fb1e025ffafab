/* Runs a program beside the event loop and reads what it says. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "weir/loop.h"

#define PROGRAM_OUTPUT_MAX 4096

struct program_run;
/* @success: it ended in time with status 0. @output: the first PROGRAM_OUTPUT_MAX - 1 bytes of what
 * it wrote to its standard output, as a string. The callee may start it again. */
typedef void program_done_fn(struct program_run *run, bool success, const char *output);

/* A running program; to be embedded. Zeroed: none runs. */
struct program_run {
	struct loop_io death;
	struct loop_timer deadline;
	pid_t pid; /* 0: none runs */
	int process, output;
	program_done_fn *done;
};

/* Starts @argv[0], a path, in a session of its own, with @environment. It is killed after @seconds.
 * 0 or a negative errno. */
int program_run_start(struct program_run *run, struct loop *loop, char *const argv[],
		      char *const environment[], unsigned seconds, program_done_fn *done);
/* The same for a program that the caller has started: @pid, a child, or a negative errno, which is
 * returned. It writes to @output, a file. Takes @output, also when it fails; @pid is then killed.
 */
int program_run_watch(struct program_run *run, struct loop *loop, pid_t pid, int output,
		      unsigned seconds, program_done_fn *done);
/* Kills it; done() is not called. */
void program_run_stop(struct program_run *run);

/* The path of @name beside the running program. False: it does not fit. */
bool program_beside(const char *name, char *path, size_t size);
