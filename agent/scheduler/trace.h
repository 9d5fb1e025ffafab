/* Traces of arrivals: who asked for how much of a GPU, and when. weir-sim reads them, `weirctl
 * trace` records them. Text, a line for each thing, `#` begins a comment:
 *
 *   client NAME [copies=N] [level=low|normal|high|critical] [share=1..100] [slo=DURATION]
 *               [evict=DURATION | evict=never] [every=DURATION | always] [work=DURATION]
 *               [launch=DURATION] [overlap=DURATION]
 *   work TIME NAME DURATION
 *   end TIME
 *
 * `work`: at TIME the client launches what takes DURATION of a GPU of its own. A client with
 * `every` does so at random times, this far apart on average; one that is there `always` never has
 * nothing to do, and `work` is how far ahead it launches. `evict` is how long its running kernels
 * take to leave; with `never` they run to their end. `launch` is how long a kernel takes, of which
 * its work then consists; else what it launches at a time is one. `overlap` is how much of the end
 * of each does not fill the GPU: a launch of another client may have begun by then, below MPS.
 * `copies=3` makes NAME.0, NAME.1 and NAME.2. Times count from the trace's begin, and have units
 * like durations (`end 1.5s`). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TRACE_CLIENTS_MAX 65536u
#define TRACE_WORK_MAX    (16u << 20)
#define TRACE_NAME_MAX    64 /* with its NUL */
#define TRACE_NEVER       UINT64_MAX

struct trace_client {
	char name[TRACE_NAME_MAX];
	uint8_t level;
	uint32_t share;
	uint64_t slo, evict; /* ns; 0: none, not known; @evict: or TRACE_NEVER */
	uint64_t every;      /* ns; 0: only what `work` lines say */
	uint64_t work;       /* ns at a time, for `every` and `always` */
	uint64_t launch;     /* ns of each of its launches; 0: all at a time is one */
	uint64_t overlap;    /* ns of the end of each that leave room for others' */
	bool always;
};

struct trace_work {
	uint64_t at, length; /* ns */
	uint32_t client;     /* index */
};

struct trace {
	size_t n_clients, n_work;
	struct trace_client *clients;
	struct trace_work *work; /* by time */
	uint64_t end;            /* ns; 0: not said */
};

/* Reads to the end of @in. -EINVAL and one line `NAME:LINE: what was expected` in @message;
 * -ENOMEM. */
int trace_read(struct trace *out, FILE *in, const char *name, char *message, size_t message_size);
void trace_deinit(struct trace *trace);

/* Writes the lines that trace_read() reads. @client->name must be of letters, digits and `._/-`;
 * trace_name() makes it so. */
void trace_write_client(FILE *out, const struct trace_client *client);
void trace_write_work(FILE *out, uint64_t at, const char *name, uint64_t length);
void trace_write_end(FILE *out, uint64_t at);
void trace_name(char *name);
