/* A loop from the inside: the parts that its thread works with. */
#pragma once

#include "loop/gpu.h"
#include "loop/handles.h"
#include "loop/stay.h"
#include "loop/rings.h"
#include "loop/staging.h"
#include "loop/workers.h"

#include "weir/loop-link.h"
#include "weir/loop.h"

#define NO_SLOT UINT32_MAX

enum waits { WAITS_FILE, WAITS_NET, WAITS_TIMER, WAITS_CALL, WAITS_KINDS };

/* The request of a slot. */
struct slot {
	struct weir_loop_request request;
	struct handle *handle; /* that the request uses; NULL: none */
	struct io io;
	enum waits waits;
	uint32_t next; /* of a list of slots */
	uint64_t due;  /* of a timer */

	/* A transfer through staging buffers. */
	uint64_t issued; /* bytes that pieces were made of */
	uint64_t end;    /* bytes after which it ends, if that is early */
	int64_t error;
	uint32_t pieces; /* in flight */
	bool listed;     /* in `wanting` */
};

struct pieces {
	struct piece *first, **end;
};

struct slot_list {
	uint32_t first, last;
};

struct weir_loop {
	struct weir_loop_options options;
	struct gpu gpu;
	void *shared; /* with the kernel */
	struct rings rings;
	struct io_engine *engine;
	uint32_t spare_readers;  /* beyond options.readers */
	struct workers *readers; /* copy from the page cache into staging buffers */
	struct cufile cufile;
	bool cufile_tried;
	struct handles handles;
	struct slot *slots;

	struct staging staging;
	void *staged;             /* its memory */
	struct piece *given;      /* small pieces that blocks copy by themselves */
	struct pieces ready;      /* that have been read, in order */
	struct pieces in, out;    /* copies under way, in order; the first piece of each */
	uint64_t copying;         /* bytes of `in` */
	uint64_t copying_since;   /* ns: the first of `in` */
	uint64_t ns_per_mib;      /* of the copies so far */
	struct slot_list wanting; /* transfers that want buffers */
	uint64_t turn;            /* bytes left of the turn of a transfer */
	uint64_t follows;         /* the address at which it goes on */

	uint32_t *timers; /* a heap of slots, the next one first */
	uint32_t n_timers;
	bool opened;    /* the kernel has opened a file */
	bool starved;   /* listeners wait for a free handle or descriptor */
	uint64_t retry; /* when to accept again, ns; 0: at once */

	uint32_t operations;     /* of the engine, not reaped yet */
	uint32_t reading;        /* reads of the readers, not reaped yet */
	_Atomic uint32_t serial; /* of the last launch */
	_Atomic bool on_gpu;
	bool has_run;
	struct stay stay;
	uint64_t launched_at, left_at;
	uint64_t began_at; /* when the kernel was first seen on the GPU; 0: it was not */
	uint64_t ran;      /* ns on the GPU, of the launches before this one */
	_Atomic bool stops;
	/* Written by the loop's thread, read by weir_loop_stats(). */
	struct {
		_Atomic uint64_t launches, requests, bytes_in, bytes_out, gds;
	} counters;
	struct weir_loop_state state; /* read by libweir */
	bool governable;              /* libweir is there */
	bool governed;                /* and the loop runs */
	struct weir_loop_words words; /* of the last launch */
	uint64_t words_again;
	char error[200];
};

uint64_t loop_now(void); /* CLOCK_MONOTONIC in ns */

/* Hands an operation to the engine; `finish` is called when it has ended. */
void loop_submit(struct weir_loop *loop, struct io *io);
/* The same for a read. If there are readers, one of them first tries the page cache. */
void loop_submit_read(struct weir_loop *loop, struct io *io);
static inline void loop_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline struct weir_loop *loop_of(const struct io *io)
{
	return io->owner;
}
static inline struct slot *slot_of(struct io *io)
{
	return (struct slot *)((char *)io - offsetof(struct slot, io));
}
static inline uint32_t slot_number(const struct weir_loop *loop, const struct slot *slot)
{
	return (uint32_t)(slot - loop->slots);
}
static inline bool slot_receives(const struct slot *slot)
{
	return slot->request.op == WEIR_LOOP_RECEIVE || slot->request.op == WEIR_LOOP_RECEIVE_ANY;
}

/* The request is done: tells the kernel, and gives the handle back. */
void loop_answer(struct weir_loop *loop, struct slot *slot, int64_t result);

static inline void slot_list_add(struct weir_loop *loop, struct slot_list *list, uint32_t slot)
{
	loop->slots[slot].next = NO_SLOT;
	if (list->first == NO_SLOT)
		list->first = slot;
	else
		loop->slots[list->last].next = slot;
	list->last = slot;
}

static inline void slot_list_add_first(struct weir_loop *loop, struct slot_list *list,
				       uint32_t slot)
{
	loop->slots[slot].next = list->first;
	if (list->first == NO_SLOT)
		list->last = slot;
	list->first = slot;
}

/* NO_SLOT: it is empty. */
static inline uint32_t slot_list_take(struct weir_loop *loop, struct slot_list *list)
{
	uint32_t slot = list->first;

	if (slot != NO_SLOT)
		list->first = loop->slots[slot].next;
	return slot;
}

/* requests.c: begins a request that rings_take() gave. */
void requests_start(void *loop, uint32_t slot, const struct weir_loop_request *request);

/* transfer.c: data of requests. */
int transfers_init(struct weir_loop *loop, uint32_t buffers);
void transfers_deinit(struct weir_loop *loop);
/* Reads, writes, receives or sends what the slot's request says, by its handle. */
void transfer_begin(struct weir_loop *loop, struct slot *slot, int flags);
/* Goes on with copies that have ended. True: there were some. */
bool transfers_look(struct weir_loop *loop);
bool transfers_copying(const struct weir_loop *loop);
/* A copy of the piece's data has ended. */
void transfer_copied(struct weir_loop *loop, struct piece *piece, int error);
/* A transfer has ended, with this result. */
void requests_transferred(struct weir_loop *loop, struct slot *slot, int64_t result);

/* network.c */
void network_ask(struct weir_loop *loop, struct slot *slot);
void network_again(struct weir_loop *loop, struct handle *connection);
/* For a receive: takes up to @size bytes of what came ahead. Returns how many; 0: nothing did, or
 * the slot does not receive. */
uint64_t network_take(struct weir_loop *loop, const struct slot *slot, void *to, uint64_t size);
/* True: what came ahead is enough for the slot's receive. It lies beside the slot, and the transfer
 * has ended. */
bool network_answers(struct weir_loop *loop, struct slot *slot);
int64_t network_add(struct weir_loop *loop, int fd, uint32_t listener);
void network_end_accepts(struct weir_loop *loop, struct handle *listener);
void network_close(struct weir_loop *loop, struct handle *handle);
/* An operation of a slot that network_ask() began has ended. True: it goes on with another one.
 * False:
 * @result is for the kernel. */
bool network_received(struct weir_loop *loop, struct slot *slot, int64_t result);
void network_retry(struct weir_loop *loop, uint64_t now);

/* timers.c */
void timers_add(struct weir_loop *loop, struct slot *slot, uint64_t due);
bool timers_look(struct weir_loop *loop, uint64_t now);
/* When the next timer is due, ns; UINT64_MAX: there is none. */
uint64_t timers_next(const struct weir_loop *loop);
