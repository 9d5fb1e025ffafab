/* The executor. An op is one piece of work. It starts when all ops before it are done; then the ops
 * after it may start. Streams, events and graphs only define which op comes after which.
 *
 * All functions here are called with sim.lock held unless their comment says otherwise.
 */
#pragma once

#include "simcuda/driver/driver.h"

#define MEMOPS_MAX 256u /* in a batch; as the driver says */

enum work_kind {
	WORK_EMPTY,
	WORK_KERNEL,
	WORK_COPY,
	WORK_SET,
	WORK_HOST,
	WORK_MEMOPS,
	WORK_RECORD, /* graphs only: a stream's record is a WORK_EMPTY that the event points to */
	WORK_WAIT,   /* graphs only */
	WORK_FREE,
	WORK_ALLOC, /* graphs only: an allocation of the graph */
	WORK_GRAPH, /* graphs only: child */
	WORK_KINDS,
};

struct copy_side {
	char *base;
	size_t pitch, height; /* of a row, and rows of a slice */
};

/* One piece of work. Plain data; work_clone() copies it deeply. */
struct work {
	enum work_kind kind;
	struct context *ctx;
	union {
		struct {
			struct function *function;
			struct module *module; /* counted */
			struct ptx_launch launch;
			uint8_t *params; /* owned */
			bool cooperative;
			bool overlaps; /* may start before the kernel in front is done */
			int priority;
		} kernel;
		struct {
			struct copy_side from, to;
			size_t width, rows, slices; /* bytes a row */
			char *staged;               /* owned copy of the source, or null */
		} copy;
		struct {
			char *base;
			size_t pitch, width, rows; /* elements a row */
			unsigned element;          /* 1, 2, 4 bytes */
			uint32_t value;
		} set;
		struct {
			CUhostFn function;
			CUstreamCallback callback; /* the older kind, with stream and status */
			CUstream stream;
			void *data;
		} host;
		struct {
			CUstreamBatchMemOpParams *ops; /* owned */
			unsigned count;
			unsigned flags;
		} memops;
		CUevent event;      /* WORK_RECORD, WORK_WAIT */
		CUdeviceptr memory; /* WORK_FREE */
		struct {
			CUdeviceptr memory;
			size_t size;
		} alloc;
		struct graph *graph; /* WORK_GRAPH: owned */
	};
};

bool work_clone(struct work *out, const struct work *from); /* false: no memory */
void work_deinit(struct work *w);

struct op {
	struct work work;
	unsigned refs;
	unsigned unmet; /* unfinished ops before it, +1 before submission */
	bool started, done;
	uint64_t sequence; /* in its context */
	uint64_t done_at;  /* nanoseconds, monotonic */
	struct op **after; /* ops that come after this one */
	size_t n_after, room;
	struct op *prev, *next; /* outstanding in the context */
	struct op *queued;      /* the next op in the queue that it is in */
	union {
		struct {
			uint64_t blocks, started, running, ticket;
			uint64_t permitted; /* blocks that let the next kernel start, or ended */
			struct op
				*overlapped; /* the kernel in front, if this one may start early */
			struct op *overlapper; /* the reverse */
			bool holds;            /* the overlapper has no permission yet */
			bool pushed;           /* into the machine's queue */
			/* of a cooperative launch */
			uint64_t workspace[PTX_WORKSPACE_BYTES / sizeof(uint64_t)];
		} kernel;
		struct {
			unsigned next; /* memory operation to do */
		} memops;
	};
};

/* A kind of work. @start returns at once; the op calls op_done() itself, now or later. A worker
 * thread calls @run without the lock. @cancel: the context ends, so a started op should end, too.
 * All but @start may be null. */
struct op_type {
	void (*start)(struct op *op);
	void (*run)(struct op *op);
	void (*cancel)(struct op *op);
	void (*ended)(struct op *op); /* it is done */
	bool always;                  /* also in a broken context */
};
extern const struct op_type kernel_type, copy_type, set_type, host_type, memops_type, free_type;

/* Takes over @work, also when it fails (null). */
struct op *op_new(struct work *work);
struct op *op_ref(struct op *op);
void op_unref(struct op *op);
void op_unrefp(struct op **op);
void op_after(struct op *op, struct op *earlier); /* @earlier may be null or done */
void op_submit(struct op *op);
/* @op need not wait for one of those before it any longer. */
void op_release(struct op *op);
void op_done(struct op *op);
void op_wait(struct op *op);  /* sleeps without the lock */
void op_ready(struct op *op); /* nothing is before it: ops_drain() starts it */
void ops_drain(void);

void blocks_init(void); /* core/blocks.c */

/* core/pause.c: while the channel group of a context is stopped, its ready ops wait here. */
bool op_parked(struct op *op);
void ops_unpark(void); /* those that need not wait are ready again */
/* Contexts whose MPS server was hit by another client's end are broken. */
void contexts_check(void);
bool context_stopped(const struct context *ctx);
/* Waits until the GPU can work for @ctx. */
CUresult context_reach(struct context *ctx);

void worker_pool_push(struct worker_pool *pool, struct op *op);
bool thread_start(void *(*run)(void *), void *data);
uint64_t time_now(void);

/* Appends work to the stream; under capture it becomes a node. Takes over @work. @out: the op
 * (counted), or null under capture; may be null. */
CUresult stream_submit(struct stream *s, struct work *work, struct op **out);
CUresult capture_add(struct stream *s, struct work *work);
/* Puts @op at the end of @s. */
void stream_append(struct stream *s, struct op *op);
/* Makes @op come after what is in @s now, as the stream rules have it. */
void stream_order(struct stream *s, struct op *op);
bool stream_idle(const struct stream *s);
CUresult stream_wait(struct stream *s);

/* stream/memop.c */
CUresult memops_work(struct work *out, struct context *ctx, unsigned count,
		     const CUstreamBatchMemOpParams *ops, unsigned flags);

/* code/launch.c: checks a launch and fills in @out. */
CUresult kernel_work(struct work *out, struct context *ctx, CUfunction function,
		     const unsigned grid[3], const unsigned block[3], unsigned shared,
		     void **params, void **extra, bool cooperative);

/* core/blocks.c: lets @op, a kernel, start when all blocks of @earlier have permitted it or ended.
 * It is done after @earlier. False: @earlier is no kernel. */
bool kernel_overlap(struct op *op, struct op *earlier);

/* memory/copy.c */
CUresult copy3d_work(struct work *out, struct context *ctx, const CUDA_MEMCPY3D *copy);
CUresult set_work(struct work *out, struct context *ctx, CUdeviceptr base, size_t pitch,
		  unsigned element, uint32_t value, size_t width, size_t rows);

/* memory/memory.c */
enum range_kind {
	RANGE_DEVICE,     /* cuMemAlloc */
	RANGE_POOL,       /* cuMemAllocAsync */
	RANGE_HOST,       /* cuMemHostAlloc */
	RANGE_REGISTERED, /* cuMemHostRegister */
	RANGE_GLOBAL,     /* a variable of a module */
	RANGE_MANAGED,    /* cuMemAllocManaged */
	RANGE_MAPPED,     /* cuMemMap */
	RANGE_GRAPH,      /* of a graph, which has the memory */
	RANGE_HEAP,       /* what kernels allocate from */
};
struct range {
	uintptr_t base;
	size_t size;   /* asked for */
	size_t mapped; /* bytes behind it, 0: not ours */
	enum range_kind kind;
	unsigned flags; /* of the call that made it */
	bool read_only, no_access;
	bool given_up;       /* its release is queued in a stream */
	struct context *ctx; /* null for RANGE_MAPPED, which belongs to none */
	unsigned device;
	struct physical *memory; /* of RANGE_MAPPED */
	struct pool *pool;
	const void *owner; /* the module of a variable */
	uint64_t id;
};
bool range_find(uintptr_t address, struct range *out);         /* no lock needed */
bool range_allows(uintptr_t address, size_t size, bool write); /* no lock needed */
CUresult range_add(const struct range *range);
bool range_remove(uintptr_t base, struct range *out);
void range_set_access(uintptr_t base, bool read, bool write);
bool range_give_up(uintptr_t base); /* false: nothing that can be released there, or already */
/* Removes one range of @ctx, and of @owner unless null. False: none is left. */
bool range_take(const struct context *ctx, const void *owner, struct range *out);
void range_free_context(struct context *ctx);
CUresult memory_new(CUdeviceptr *out, struct context *ctx, size_t size, enum range_kind kind,
		    unsigned flags);
CUresult
memory_map(struct range *range); /* pages of range->size; charges the GPU if of its memory */
void memory_unmap(const struct range *range);

/* memory/heap.c: malloc() and free() of kernels; @data: a context. Called without the lock. */
void *heap_allocate(void *data, uint64_t size);
void heap_release(void *data, void *memory);

/* memory/pool.c */
void pool_release(CUdeviceptr memory);
CUmemoryPool pool_handle(const struct pool *p); /* @p may be null */
void pool_take_back(const struct range *range);
