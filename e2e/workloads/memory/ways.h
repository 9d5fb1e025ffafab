/* The ways in which a process takes memory of a GPU. */
#pragma once

#include <weir/fatbin.h>

#include "workload.h"

#define ITEMS 64

struct taker;
struct item;

struct way {
	const char *name;
	/* OUT_OF_MEMORY: refused. NOT_SUPPORTED: the driver has no such way. */
	CUresult (*make)(struct taker *t, struct item *item);
	void (*drop)(struct taker *t, struct item *item);
};

/* What was taken in a way. The members that the way needs are set. */
struct item {
	const struct way *way;
	CUdeviceptr address;
	CUmemGenericAllocationHandle handle;
	CUarray array;
	CUmipmappedArray levels;
	CUmodule module;
	CUlibrary library;
	CUgraph graph;
	CUgraphExec exec;
};

/* The process, with what the ways take from. */
struct taker {
	struct workload *workload;
	size_t piece, limit;
	CUcontext other;
	CUstream stream;
	CUmemoryPool pool;
	char ptx[512]; /* with a variable of a piece */
	struct {
		struct fatbin_container head;
		struct fatbin_entry entry;
		char ptx[512];
	} fatbin;
	size_t stack; /* bytes a thread, for a piece */
	struct item items[ITEMS];
	size_t n;
};

extern const struct way ways[];
extern const size_t n_ways;

/* Opens the workload of @t, and makes what the ways need. */
void taker_open(struct taker *t);
