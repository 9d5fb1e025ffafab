/* What a kernel has open: it names files by handles, never by descriptors of the process. */
#pragma once

#include "loop/cufile.h"
#include "loop/io.h"

#include <stdatomic.h>

enum handle_kind { HANDLE_FREE, HANDLE_FILE, HANDLE_LISTENER, HANDLE_CONNECTION };

#define HANDLE_NONE UINT32_MAX

/* Where a connection of a listener with receive_any() is. */
enum turn {
	TURN_NONE,  /* it was accepted or connected by the program */
	TURN_WAITS, /* for data */
	TURN_READY, /* in the listener's list */
	TURN_TAKEN, /* the program has it */
};

struct handle {
	enum handle_kind kind;
	void *gds;        /* of libcufile, for `direct`; NULL: none */
	int fd, direct;   /* direct: the same file with O_DIRECT; -1: none */
	uint32_t pending; /* operations that use the descriptors */
	bool closing;     /* they are closed when no operation uses them */
	_Atomic uint16_t port;
	uint32_t next; /* the free list, or a listener's list of ready connections */

	/* Of a listener: */
	uint32_t ready, ready_end;   /* connections with data */
	uint32_t asking, asking_end; /* slots that wait for one */
	uint32_t wanted;             /* bytes that the last of them asked for */
	bool accepting;
	/* Of a connection: */
	enum turn turn;
	uint32_t listener;
	/* What came ahead of a receive, and is left: from `came` on in a buffer of the engine's. */
	void *buffer; /* NULL: nothing */
	uint32_t came, left;
	struct io io; /* waits for a connection, or for data */
};

struct handles {
	uint32_t size, open, unused; /* unused: the first of the free list */
	struct handle *table;
	const struct cufile *cufile;
};

/* @cufile: the caller's, until handles_deinit(). */
int handles_init(struct handles *handles, uint32_t size, const struct cufile *cufile);
/* Closes all descriptors. No operation uses them. */
void handles_deinit(struct handles *handles);

/* Takes @fd on success. -EMFILE: the table is full. */
int64_t handles_add(struct handles *handles, enum handle_kind kind, int fd);

/* NULL: no such handle, or it is being closed. */
struct handle *handles_find(struct handles *handles, int32_t number);

/* Nobody finds it any more. Its descriptors are closed when `pending` is 0. */
void handles_close(struct handles *handles, struct handle *handle);
/* An operation began, or has ended. */
void handles_use(struct handle *handle);
void handles_unuse(struct handles *handles, struct handle *handle);

static inline uint32_t handles_number(const struct handles *handles, const struct handle *handle)
{
	return (uint32_t)(handle - handles->table);
}
