/* Input and output of the host, done by io_uring (io-uring.c) or, where that is forbidden, by a
 * pool of threads and epoll (io-pool.c). One thread owns an engine; only io_wake() may be called by
 * others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define IO_AHEAD_MOST 4096u

enum io_kind {
	IO_OPEN,        /* path, flags, mode; result: a descriptor */
	IO_READ,        /* once: may be short */
	IO_READ_CACHED, /* of workers alone: what is in the page cache; -EAGAIN: nothing */
	IO_WRITE,       /* all of it, unless it fails */
	IO_FSYNC,
	IO_ACCEPT,  /* result: a descriptor */
	IO_CONNECT, /* address */
	IO_RECEIVE, /* once */
	/* Once, when there is something, up to IO_AHEAD_MOST bytes into a buffer of the engine's.
	 * If the result is above 0, `buffer` says which, and it is the caller's until give().
	 * -ENOBUFS: all are in use. Only of an engine with `ahead`. */
	IO_RECEIVE_AHEAD,
	IO_SEND,     /* all of it, unless it fails */
	IO_READABLE, /* until there is something to receive, or the other side is gone */
	IO_CALL,     /* run(io), in a thread of the engine */
};

/* One operation. The caller's until submitted, and again when reaped. */
struct io {
	struct io *next; /* the engine's */
	enum io_kind kind;
	int fd;
	void *buffer;
	uint64_t size, offset;
	uint64_t done; /* the engine's: bytes so far of a WRITE or SEND */
	int flags;
	unsigned mode;
	struct sockaddr_storage address;
	socklen_t address_size;
	int64_t (*run)(struct io *io);

	bool at_end;                   /* READ_CACHED: nothing is behind what was read */
	int64_t result;                /* or a negative errno */
	void (*finish)(struct io *io); /* by whoever reaps it */
	void *owner;
};

struct io_engine;

struct io_engine_type {
	const char *name;
	/* Also says how many are submitted but not reaped, at most. */
	int (*new)(struct io_engine **out, uint32_t most);
	void (*free)(struct io_engine *engine); /* nothing is submitted */
	void (*submit)(struct io_engine *engine, struct io *io);
	void (*kick)(struct io_engine *engine); /* begins what was submitted */
	struct io *(*reap)(struct io_engine *engine);
	/* Until something can be reaped, io_wake(), or @ns are over (UINT64_MAX: no limit). */
	void (*wait)(struct io_engine *engine, uint64_t ns);
	/* The operation ends soon, with -ECANCELED if it had not begun. It must be reaped. */
	void (*cancel)(struct io_engine *engine, struct io *io);
	/* A buffer of IO_RECEIVE_AHEAD is idle again. NULL: the engine has none. */
	void (*give)(struct io_engine *engine, void *buffer);
};

extern const struct io_engine_type io_uring_engine, io_pool_engine;

/* First member of each engine. */
struct io_engine {
	const struct io_engine_type *type;
	int event;  /* an eventfd: writing to it ends a wait */
	bool ahead; /* it has buffers for IO_RECEIVE_AHEAD */
};

/* Any thread. */
static inline void io_wake(const struct io_engine *engine)
{
	eventfd_write(engine->event, 1);
}
