/* Kernels on SM slots. A kernel joins the machine's queue when it is the next op of its stream. One
 * block thread of this process, the leader, asks the queue for a slot. When the leader gets a slot,
 * it runs the block itself and another thread becomes the leader. */
#include "simcuda/driver/exec.h"

#include <errno.h>
#include <time.h>

/* Kernels of a process in the machine's queue; more wait here, in order. */
#define PUSHED_MAX 128u
/* A block that only fills its time checks this often for its end. */
#define CHECK_NS        5000000l
#define CHECK_SLICED_NS 100000l

/* The block that this thread runs. */
static __thread struct {
	struct machine_place *place;
	const volatile int *stop;
	uint64_t paused; /* nanoseconds */
} self;

/* The interpreter calls it between instructions. */
static void pause_block(void)
{
	uint64_t began;

	if (machine_hit(&sim.machine, self.place->group)) {
		pthread_mutex_lock(&sim.lock);
		contexts_check();
		pthread_mutex_unlock(&sim.lock);
	}
	if (machine_may_run(&sim.machine, self.place))
		return;
	began = time_now();
	machine_pause(&sim.machine, self.place, self.stop);
	self.paused += time_now() - began;
}

static struct block_queue *queue_of(const struct op *op)
{
	return &op->work.ctx->device->blocks;
}

static bool has_run(const struct op *op)
{
	return op->started && op->kernel.started == op->kernel.blocks && !op->kernel.running;
}

/* A kernel that overlaps another one is done after it. */
static void finish(struct op *op)
{
	const struct op *before = op->kernel.overlapped;

	if (has_run(op) && !op->done && (!before || before->done))
		op_done(op);
}

bool kernel_overlap(struct op *op, struct op *earlier)
{
	if (!earlier || earlier->done || earlier->work.kind != WORK_KERNEL ||
	    earlier->kernel.overlapper)
		return false;
	earlier->kernel.overlapper = op_ref(op);
	op->kernel.overlapped = op_ref(earlier);
	earlier->kernel.holds =
		!earlier->kernel.blocks || earlier->kernel.permitted < earlier->kernel.blocks;
	op->unmet += earlier->kernel.holds;
	return true;
}

static void release(struct op *op)
{
	bool held = op->kernel.holds;

	op->kernel.holds = false;
	if (held)
		op_release(op->kernel.overlapper);
}

static void permit(struct op *op)
{
	if (++op->kernel.permitted == op->kernel.blocks)
		release(op);
}

static void end_kernel(struct op *op)
{
	struct op *next = op->kernel.overlapper;

	release(op);
	op_unref(op->kernel.overlapped);
	op->kernel.overlapped = op->kernel.overlapper = NULL;
	if (next)
		finish(next);
	op_unref(next);
}

/* A block that is running. */
struct running {
	struct op *op;
	bool permitted;
	bool asserted; /* an assertion of its kernel failed */
};

static void permit_by_block(void *data)
{
	struct running *running = data;

	pthread_mutex_lock(&sim.lock);
	running->permitted = true;
	permit(running->op);
	pthread_mutex_unlock(&sim.lock);
}

static bool is_awaited(const struct op *op)
{
	bool awaited;

	pthread_mutex_lock(&sim.lock);
	awaited = op->kernel.overlapped && !op->kernel.overlapped->done;
	pthread_mutex_unlock(&sim.lock);
	return awaited;
}

/* The block keeps its slot unless its group is stopped. */
static void await_overlapped(void *data)
{
	const struct op *op = ((struct running *)data)->op;

	while (!__atomic_load_n(&op->work.ctx->stop, __ATOMIC_RELAXED) && is_awaited(op)) {
		nanosleep(&(struct timespec){.tv_nsec = CHECK_SLICED_NS}, NULL);
		pause_block();
	}
}

/* Values beyond the range count as its ends. */
static int priority_of(const struct op *op)
{
	int priority = op->work.kernel.priority;

	if (priority > LEAST_PRIORITY)
		return LEAST_PRIORITY;
	return priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority;
}

static bool push(struct device *d)
{
	struct block_queue *q = &d->blocks;
	struct op *op = q->first;

	if (!op || q->pushed >= PUSHED_MAX)
		return false;
	struct machine_kernel kernel = {.group = op->work.ctx->group,
					.cookie = (uintptr_t)op,
					.blocks = op->kernel.blocks,
					.priority = priority_of(op),
					.cooperative = op->work.kernel.cooperative};
	if (machine_push(&sim.machine, d->gpu, &kernel, &op->kernel.ticket))
		return false;
	q->first = op->queued;
	if (!q->first)
		q->last = NULL;
	op->kernel.pushed = true;
	q->pushed++;
	return true;
}

/* A block that wrote occupies its slot for block_us. Time in which the group may not run does not
 * count. */
static void fill_time(const struct context *ctx, uint64_t began)
{
	uint64_t floor = sim.machine.config.block_us * UINT64_C(1000), spent;
	long check = sim.machine.config.slices ? CHECK_SLICED_NS : CHECK_NS;

	while (!__atomic_load_n(&ctx->stop, __ATOMIC_RELAXED) &&
	       (spent = time_now() - began - self.paused) < floor) {
		uint64_t left = floor - spent;
		const struct timespec nap = {.tv_nsec =
						     left < (uint64_t)check ? (long)left : check};

		nanosleep(&nap, NULL);
		pause_block();
	}
}

/* Called without the lock. */
static int run_block(struct running *running, uint64_t block, struct machine_place *place)
{
	struct op *op = running->op;
	struct context *ctx = op->work.ctx;
	const struct ptx_dependence dependence = {permit_by_block, await_overlapped, running};
	const struct ptx_heap heap = {heap_allocate, heap_release, ctx};
	struct ptx_launch launch = op->work.kernel.launch;
	struct ptx_error error = {0};
	uint64_t began = time_now();
	bool wrote;
	int r;

	self.place = place;
	self.stop = &ctx->stop;
	self.paused = 0;
	launch.dependence = &dependence;
	launch.heap = &heap;
	launch.workspace = op->work.kernel.cooperative ? op->kernel.workspace : NULL;
	r = ptx_run_block(op->work.kernel.function->kernel, &launch, block,
			  machine_sm_of(&sim.machine.config, place->slot), &ctx->stop, &error,
			  &wrote);
	if (r && r != -EINTR)
		sim_say("kernel %s: line %d: %s", ptx_kernel_name(op->work.kernel.function->kernel),
			error.line, error.message);
	running->asserted = error.asserted;
	if (wrote)
		fill_time(ctx, began);
	return r;
}

/* Runs blocks on @place for as long as the machine gives it to this process. */
static void use_slot(struct device *d, struct machine_place *place)
{
	struct block_queue *q = &d->blocks;

	do {
		struct op *op = (struct op *)(uintptr_t)place->cookie;
		struct running running = {.op = op};
		uint64_t block = op->kernel.started++;
		int r;

		op->kernel.running++;
		if (op->kernel.started == op->kernel.blocks)
			q->pushed--;
		if (q->pushed || q->first)
			pthread_cond_signal(&q->cond);

		pthread_mutex_unlock(&sim.lock);
		r = run_block(&running, block, place);
		pthread_mutex_lock(&sim.lock);

		if (r && r != -EINTR)
			machine_hit_others(&sim.machine, op->work.ctx->group);
		if (r && !op->work.ctx->dying)
			context_fault(op->work.ctx, running.asserted ? CUDA_ERROR_ASSERT
								     : CUDA_ERROR_ILLEGAL_ADDRESS);
		op->kernel.running--;
		if (!running.permitted)
			permit(op);
		finish(op);
	} while (machine_next(&sim.machine, place) == MACHINE_OK);
}

/* The leader's attempt to get one slot. */
static void lead(struct device *d)
{
	struct machine_place place;
	uint32_t sequence = 0;

	while (push(d))
		;
	if (machine_start(&sim.machine, d->gpu, &place, &sequence) == MACHINE_OK) {
		d->blocks.leader = false;
		use_slot(d, &place);
		return;
	}
	pthread_mutex_unlock(&sim.lock);
	machine_wait(&sim.machine, d->gpu, sequence);
	pthread_mutex_lock(&sim.lock);
	d->blocks.leader = false;
	contexts_check();
}

static void *block_thread(void *data)
{
	struct device *d = data;
	struct block_queue *q = &d->blocks;

	pthread_mutex_lock(&sim.lock);
	for (;;) {
		if (q->leader || (!q->pushed && !q->first)) {
			q->idle++;
			pthread_cond_wait(&q->cond, &sim.lock);
			q->idle--;
			continue;
		}
		q->leader = true;
		lead(d);
	}
	return NULL;
}

/* Starts enough threads to run all blocks that fit at once: blocks of a cooperative kernel wait for
 * each other. */
static void have_threads(struct device *d, uint64_t blocks)
{
	struct block_queue *q = &d->blocks;

	while (q->threads < machine_slots(&sim.machine.config) && q->idle < blocks &&
	       thread_start(block_thread, d)) {
		q->threads++;
		blocks--; /* that thread runs it or becomes idle */
	}
}

static void start_kernel(struct op *op)
{
	struct block_queue *q = queue_of(op);
	const struct ptx_dim *grid = &op->work.kernel.launch.grid;

	op->kernel.blocks = (uint64_t)grid->x * grid->y * grid->z;
	op->queued = NULL;
	if (q->last)
		q->last->queued = op;
	else
		q->first = op;
	q->last = op;
	while (push(op->work.ctx->device))
		;
	have_threads(op->work.ctx->device, op->kernel.blocks);
	if (!q->threads)
		context_fault(op->work.ctx, CUDA_ERROR_OUT_OF_MEMORY);
	else
		pthread_cond_signal(&q->cond);
}

static void unqueue(struct block_queue *q, struct op *op)
{
	struct op *before = NULL;

	for (struct op *o = q->first; o && o != op; o = o->queued)
		before = o;
	if (before)
		before->queued = op->queued;
	else
		q->first = op->queued;
	if (q->last == op)
		q->last = before;
}

/* The context ends: running blocks stop by themselves, the others never start. */
static void cancel_kernel(struct op *op)
{
	struct block_queue *q = queue_of(op);

	if (op->done || op->kernel.started == op->kernel.blocks)
		return;
	if (op->kernel.pushed) {
		machine_cancel(&sim.machine, op->work.ctx->device->gpu, op->kernel.ticket);
		q->pushed--;
	} else {
		unqueue(q, op);
	}
	op->kernel.started = op->kernel.blocks;
	finish(op);
}

void blocks_init(void)
{
	ptx_set_pause(pause_block);
}

const struct op_type kernel_type = {
	.start = start_kernel, .cancel = cancel_kernel, .ended = end_kernel};
