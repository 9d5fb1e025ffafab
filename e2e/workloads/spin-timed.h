/* Launches of spin() that leave the GPU's times of their begin and end, so that a request's time
 * can be divided: what the GPU took, and what the client's own thread lost while the GPU had
 * nothing of it to do. */
#pragma once

#include "spin.h"

#include <stdio.h>

/* ns. The first four add up to the request's time. */
struct timed_parts {
	uint64_t served;   /* the GPU had work of the request that it could begin, or ran it */
	uint64_t call;     /* until the first launch was made */
	uint64_t starved;  /* a kernel had ended before the next one was launched */
	uint64_t noticed;  /* from the last kernel's end to the return of the synchronise, */
	uint64_t released; /* of which the GPU took so long until its stream was seen to be done */
	uint64_t delayed;  /* of all that, the thread was ready to run and had no CPU */
	/* Of all that, the thread waited for something else, or the machine's host had its CPU. */
	uint64_t slept;
	uint64_t kernels; /* from the first one's begin to the last one's end, on the GPU */
	/* The same from the moment when the GPU came to the first launch, whoever it ran then; 0:
	 * not asked for. */
	uint64_t spanned;
	uint64_t kernel; /* the median of the kernels: a lower clock changes it, a pause does not */
};

struct timed {
	struct spin *spin;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr ended;
	CUevent front;       /* in front of the first launch; NULL: not asked for */
	CUevent first, last; /* behind these launches of the request */
	uint64_t kernels;
	volatile uint64_t (*times)[2]; /* GPU: begin and end of each launch of the request */
	uint64_t *launched;            /* host: when the call returned */
	uint64_t *lengths;             /* of the kernels, sorted */
	int64_t ahead;                 /* ns, of the GPU's clock over the host's */
	uint64_t looked;               /* when that was last looked at; 0: never */
	int cpu_file;         /* of how long this thread was without a CPU; -1: there is none */
	uint64_t ran, waited; /* when the request began */
};

/* @kernels: of a request. @spans: `spanned` is asked for, which takes an event more. By the thread
 * that sends the requests. */
void timed_init(struct timed *timed, struct spin *spin, uint64_t kernels, bool spans);
void timed_deinit(struct timed *timed);

void timed_begin(struct timed *timed);
/* Launch @k of the request, counted as one of @timed's spin. */
void timed_launch(struct timed *timed, uint64_t k, CUstream stream);
/* Of a request that is finished. @begin, @end: of now_ns(). */
struct timed_parts timed_end(struct timed *timed, uint64_t begin, uint64_t end);
