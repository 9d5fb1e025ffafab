/* Shared by the files of the simulated driver: the state, the objects behind handles, and the
 * beginning of an API function.
 *
 * One lock, `sim.lock`, guards every object and the executor. It is never held while a block, a
 * copy or a host function runs, nor while a caller sleeps. Code that runs without the lock uses
 * only its `struct op`.
 */
#pragma once

#define __CUDA_API_VERSION_INTERNAL        /* every spelling is declared, none is renamed */
#define __CUDA_API_PUSH_VISIBILITY_DEFAULT /* and exported */
#include <cuda.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simcuda/machine/machine.h"
#include "simcuda/ptx/ptx.h"
#include "weir/base.h"

#define LIMIT_COUNT       16u
#define MAX_SHARED        (228u * 1024u) /* bytes a block may have, opt-in */
#define DEFAULT_SHARED    (48u * 1024u)
#define MAX_THREADS       1024u
#define LEAST_PRIORITY    0
#define GREATEST_PRIORITY (-5)

struct op;
struct capture;
struct node;
struct pool;
struct physical;

struct worker_pool { /* threads that run ops of one kind, in order of arrival */
	pthread_cond_t cond;
	struct op *first, *last;
	unsigned threads, idle, max;
};

/* Kernels of this process that wait for slots. */
struct block_queue {
	pthread_cond_t cond;
	struct op *first, *last; /* not yet in the machine's queue */
	unsigned pushed;         /* in the machine's queue, with unstarted blocks */
	unsigned threads, idle;
	bool leader; /* a thread is asking for a slot */
};

struct device {
	unsigned index; /* the CUdevice of this process */
	unsigned gpu;   /* of the machine */
	struct context *primary;
	unsigned primary_refs, primary_flags;
	struct pool *default_pool, *pool;
	struct block_queue blocks;
	uint64_t graph_reserved, graph_used; /* bytes that graphs took, and of graphs that exist */
};

struct stream {
	CUstream handle;
	struct context *ctx;
	struct stream *next; /* of the context */
	unsigned flags;      /* CU_STREAM_NON_BLOCKING or 0 */
	int priority;
	uint64_t id;
	struct op *tail; /* last one submitted; counted */
	bool legacy;
	bool zombie;        /* destroyed with work outstanding */
	const void *thread; /* the per-thread default stream of this one */
	struct capture *capture;
	struct node **heads; /* under capture: what the next node depends on */
	size_t n_heads;
	CUgraphNode *head_handles; /* what cuStreamGetCaptureInfo_v2() handed out */
};

/* What a context asked the resource manager for. */
struct channels {
	uint32_t compute, copy; /* groups; 0: none */
};

#define HEAP_POWERS 40u

/* What kernels allocate from. */
struct heap {
	uintptr_t base; /* 0: nobody has allocated yet */
	uint64_t size, used;
	struct block *free[HEAP_POWERS]; /* by power of 2 of the size */
};

struct context {
	CUcontext handle;
	uint64_t id;
	struct device *device;
	struct context *next;
	bool primary;
	bool dying;
	unsigned sleepers; /* threads in op_wait(); they keep the struct alive */
	unsigned flags;
	size_t limits[LIMIT_COUNT];
	struct heap heap;
	uint32_t group; /* of the machine */
	struct channels channels;
	uint64_t limits_charge; /* bytes of what the limits allow beyond the defaults */
	CUresult fault;         /* sticky */
	volatile int stop;      /* blocks leave */
	struct stream legacy;
	struct stream *streams;  /* all others */
	uint64_t sequence;       /* counts ops */
	struct op *first, *last; /* outstanding, oldest first */
	struct module *modules;
	struct event *events;
};

struct event {
	CUevent handle;
	struct context *ctx;
	struct event *prev, *next; /* of the context */
	unsigned flags;
	struct op *op;           /* last record; counted; null: never recorded */
	struct capture *capture; /* last recorded under it */
	struct node **heads;
	size_t n_heads;
};

struct function {
	CUfunction handle;
	struct module *module;
	struct ptx_kernel *kernel;
	CUkernel of; /* the library kernel it belongs to, or null */
	int max_dynamic_shared;
	int carveout;
};

struct module {
	CUmodule handle;
	struct context *ctx;
	struct module *prev, *next; /* of the context */
	unsigned refs;
	struct ptx_module *ptx;
	struct function *functions;
	size_t n_functions;
	struct library *library; /* or null */
	uint64_t charge;         /* bytes of its variables */
};

struct sim {
	pthread_mutex_t lock;
	pthread_cond_t done; /* an op is done */
	_Atomic int state;   /* enum sim_state */
	struct machine machine;
	struct device devices[MACHINE_GPUS];
	unsigned n_devices; /* named by CUDA_VISIBLE_DEVICES */
	struct context *contexts;
	struct worker_pool copies, hosts;
	struct op *ready_first, *ready_last;
	bool draining;
	uint64_t next_id; /* of contexts and streams */
};

enum sim_state { SIM_NEW, SIM_READY, SIM_FORKED };

extern struct sim sim;

int sim_enter(void);
void sim_leave(const int *entered);

/* Writes a line to stderr if WEIR_SIM_LOG is set: the API cannot say why a kernel failed. */
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The beginning of an API function. These macros return from it if the driver or the context is
 * missing. */
#define API_ENTER()                                \
	if (atomic_load(&sim.state) != SIM_READY)  \
		return CUDA_ERROR_NOT_INITIALIZED; \
	cleanup(sim_leave) int entered_ __attribute__((unused)) = sim_enter()

#define API_CONTEXT(name)     \
	API_ENTER();          \
	struct context *name; \
	RETURN_IF(context_current(&name))

#define RETURN_IF(call)                 \
	do {                            \
		CUresult r_ = (call);   \
		if (r_ != CUDA_SUCCESS) \
			return r_;      \
	} while (0)

/* A call that only tells something: @find sets @object to a struct @type, and @value goes where OUT
 * in the parameters says. */
#define OUT(type) type *out
#define API_TELLS(call, parameters, type, object, find, value) \
	CUresult call parameters                               \
	{                                                      \
		API_ENTER();                                   \
		struct type *object;                           \
                                                               \
		RETURN_IF(find);                               \
		if (!out)                                      \
			return CUDA_ERROR_INVALID_VALUE;       \
		*out = value;                                  \
		return CUDA_SUCCESS;                           \
	}

/* Handles are numbers, never addresses: every handle from a caller is looked up. */
enum handle_type {
	HANDLE_CONTEXT = 1,
	HANDLE_MODULE,
	HANDLE_FUNCTION,
	HANDLE_LIBRARY,
	HANDLE_KERNEL,
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_POOL,
	HANDLE_GRAPH,
	HANDLE_NODE,
	HANDLE_EXEC,
	HANDLE_MEMORY,
	HANDLE_ARRAY,
};
void *handle_new(enum handle_type type, void *object); /* null: no memory */
void handle_free(void *handle);
void *handle_get(enum handle_type type, const void *handle); /* null: no such object */

/* core/context.c */
CUresult context_current(struct context **out); /* with its sticky error */
CUresult context_get(struct context **out, CUcontext handle);
CUresult context_any(struct context **out); /* the current one, which may be broken */
CUresult context_given(struct context **out, CUcontext handle); /* NULL: the current one */
bool context_lives(const struct context *ctx);                  /* only compared, never followed */
CUresult device_get(struct device **out, CUdevice dev);
/* Waits for all work of @ctx; its sticky error. */
CUresult context_wait(struct context *ctx);
/* Reports an error that ends the context: it executes nothing from here on. */
void context_fault(struct context *ctx, CUresult error);
const void *thread_self(void); /* a name of the calling thread, unique while it lives */
CUstreamCaptureMode *thread_capture_mode(void);

/* core/context-settings.c: the limits of a new context. */
void limits_init(size_t limits[LIMIT_COUNT]);

/* core/channels.c: the channel groups of a new context, and their end. */
void channels_new(struct context *ctx);
void channels_free(struct context *ctx);
void channels_forked(void);
const char *mps_folder(void); /* where the pipes of the MPS daemon would be */
/* A client of MPS has the part of the SMs that its active thread percentage says. */
void device_give_slots(void);
void channels_trap(void); /* takes back the signal SIGSYS if somebody took it */

/* stream/stream.c */
CUresult stream_get(struct stream **out, CUstream handle);
void stream_init(struct stream *s, struct context *ctx, unsigned flags);
void stream_deinit(struct stream *s);
bool stream_blocking(const struct stream *s);
void stream_thread_exit(const void *thread);

/* The stream that a per-thread spelling means by 0. */
static inline CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* stream/event.c, code/module.c: at the end of a context */
void event_free(struct event *e);
struct module *module_ref(struct module *m);
void module_unref(struct module *m);
void module_unload(struct module *m);

CUresult function_get(struct function **out, CUfunction handle, struct context *ctx);
/* A function, or the kernel of a library as a function of @ctx. */
CUresult library_function(struct function **out, CUkernel kernel, struct context *ctx);
CUresult module_create(struct module **out, struct context *ctx, const void *image, size_t size,
		       struct ptx_error *error);

/* code/fatbin.c: the PTX in an image of any kind. @owned must be freed and may be null. @size 0:
 * unknown. CUDA_ERROR_NO_BINARY_FOR_GPU: no PTX in it. */
CUresult image_find_ptx(const void *image, size_t size, const char **text, size_t *length,
			char **owned);

/* graph/capture.c */
CUresult capture_allows(void); /* a call that may synchronise or is not safe under capture */
CUresult capture_stream_idle(struct stream *s);      /* @s is asked for its state */
CUresult capture_context(const struct context *ctx); /* @ctx is asked for its state */
CUresult capture_legacy(const struct context *ctx);  /* implicit synchronisation with a capture */
CUresult capture_record(struct stream *s, struct event *e);
CUresult capture_wait(struct stream *s, struct event *e);
void capture_forget_event(struct event *e);
void capture_forget_stream(struct stream *s);
