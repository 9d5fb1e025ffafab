/* Traces of arrivals: which client launched how much work, and when. weir-sim reads them, `weirctl
 * trace` records them. Text; `#` begins a comment:
 *
 *   client NAME [copies=N] [level=low|normal|high|critical] [share=1..100] [slo=DURATION]
 *               [evict=DURATION | evict=never] [every=DURATION | always] [work=DURATION]
 *               [launch=DURATION] [overlap=DURATION] [sms=N] [min-rate=0.001..1]
 *               [yield=auto|whole|needed|needed+N%|N]
 *               [fit=1..32] [needs=1..32] [arithmetic=0.001..1] [memory=0.001..1]
 *   work TIME NAME DURATION
 *   end TIME
 *
 * `work`: at TIME the client launches work that takes DURATION on a GPU of its own. A client with
 * `every` launches `work` at random times, this far apart on average. A client with `always` always
 * has work, and `work` is how far ahead it launches. `evict` is how long its running kernels take
 * to leave; with `never` they run to their end. `launch` is the length of each of its kernels;
 * without it all work launched at a time is one kernel. `overlap` is how much of each kernel's end
 * does not fill the GPU: under MPS another client's launch may begin then. `sms` is how many SMs
 * its kernels fill, `yield` what lower levels leave to it (policy/yield.h; `auto` if it is left
 * out), `min-rate` the part of its speed alone that it keeps (policy/min-rate.h). `fit` is how many
 * blocks of its kernels an SM holds, `needs` how many of these have almost all of its speed (all,
 * if it is left out), and `arithmetic` and `memory` which part of the GPU's it uses alone
 * (sim/sim.h). `copies=3` makes NAME.0, NAME.1 and NAME.2. Times count from the trace's begin, and
 * are written like durations (`end 1.5s`). */
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
	/* All in ns. */
	uint64_t slo;                /* 0: none */
	uint64_t evict;              /* 0: not known; or TRACE_NEVER */
	uint64_t every;              /* 0: only `work` lines */
	uint64_t work;               /* at a time, for `every` and `always` */
	uint64_t launch;             /* each of its launches; 0: all work at a time is one */
	uint64_t overlap;            /* of the end of each launch */
	uint32_t sms;                /* 0: it fills the GPU */
	uint32_t yield;              /* policy/yield.h */
	uint32_t min_rate;           /* thousandths; 0: none */
	uint32_t fit;                /* workers on an SM; 0: not known */
	uint32_t needs;              /* of these; 0: all */
	uint32_t arithmetic, memory; /* thousandths of the GPU's; 0: it uses none */
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
	uint64_t end;            /* ns; 0: not given */
};

/* Reads to the end of @in. -EINVAL and one line `NAME:LINE: what was expected` in @message;
 * -ENOMEM. */
int trace_read(struct trace *out, FILE *in, const char *name, char *message, size_t message_size);
void trace_deinit(struct trace *trace);

/* Writes lines for trace_read(). Names consist of letters, digits and `._/-`; trace_name() replaces
 * other characters. */
void trace_write_client(FILE *out, const struct trace_client *client);
void trace_write_work(FILE *out, uint64_t at, const char *name, uint64_t length);
void trace_write_end(FILE *out, uint64_t at);
void trace_name(char *name);
