/* What this process has allocated: by address, array or handle. Any thread. */
#pragma once

#include "shim/driver.h"

#include <stdint.h>

struct ledger;

enum record_kind {
	RECORD_POINTER, /* an address that cuMemFree() and cuMemFreeAsync() take */
	RECORD_ARRAY,
	RECORD_MIPMAP,
	RECORD_HANDLE, /* physical memory, as cuMemCreate() made it */
	RECORD_MAPPING,
};

struct record {
	enum record_kind kind;
	uint64_t key;
	struct ledger *ledger;
	uint64_t size;             /* charged; of a mapping: addresses */
	CUcontext context;         /* goes with it; NULL: with none */
	CUmemoryPool pool;         /* charged as a part of it; NULL: of none */
	uint64_t asked;            /* of the pool */
	struct physical *physical; /* of a handle or a mapping; NULL: not made here */
};

/* Takes the place of an older one. False: no memory. */
bool table_put(const struct record *record);
/* Takes it out. False: no such record. */
bool table_take(enum record_kind kind, uint64_t key, struct record *out);
/* False: no such record. */
bool table_find(enum record_kind kind, uint64_t key, struct record *out);
/* The mapping that @address lies in. */
bool table_find_mapping(uint64_t address, struct record *out);
/* For each: true takes it out. Under the table's lock: @visit does not come back here, nor call the
 * driver. */
void table_sift(bool (*visit)(struct record *record, void *userdata), void *userdata);
/* In a forked child: empty. */
void table_forget(void);
