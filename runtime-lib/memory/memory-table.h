/* What this process has allocated, by address, array or handle. Any thread. */
#pragma once

#include "shim/driver.h"

struct ledger;

enum record_kind {
	RECORD_POINTER, /* for cuMemFree() and cuMemFreeAsync() */
	RECORD_ARRAY,
	RECORD_MIPMAP,
	RECORD_HANDLE, /* of cuMemCreate() */
	RECORD_MAPPING,
	RECORD_HEAP,    /* of malloc() in kernels, by context */
	RECORD_FIFO,    /* of printf() in kernels, by context */
	RECORD_STACK,   /* of kernels' threads, by context */
	RECORD_CODE,    /* variables; no ledger for a library's, which count in each context */
	RECORD_CONTEXT, /* its size is the number of its device */
	RECORD_GRAPH,   /* a CUgraphExec that allocates */
};

struct record {
	enum record_kind kind;
	uint64_t key;
	struct ledger *ledger;
	uint64_t size;             /* bytes charged; of a mapping: bytes of addresses */
	CUcontext context;         /* the memory goes with it; NULL: with none */
	CUmemoryPool pool;         /* whose charge includes it; NULL: none */
	uint64_t asked;            /* bytes, of the pool */
	struct physical *physical; /* of a handle or mapping; NULL: imported */
};

/* Replaces an older record with the same key. False: no memory. */
bool table_put(const struct record *record);
/* Takes the record out. False: no such record. */
bool table_take(enum record_kind kind, uint64_t key, struct record *out);
/* False: no such record. */
bool table_find(enum record_kind kind, uint64_t key, struct record *out);
/* The mapping that @address lies in. */
bool table_find_mapping(uint64_t address, struct record *out);
/* Takes out each record for which @visit returns true. The table is locked, so @visit calls neither
 * the table nor the driver. */
void table_sift(bool (*visit)(struct record *record, void *userdata), void *userdata);
/* In a forked child: empties the table. */
void table_forget(void);
