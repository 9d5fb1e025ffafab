/* Stream memory operations. A batch is done in order. At an unsatisfied wait it joins the list of
 * the poller, a thread that reads the words, less and less often while nothing changes. A waiting
 * batch occupies no slot and no other thread. */
#include "simcuda/driver/exec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define POLL_MIN_NS 20000l
#define POLL_MAX_NS 1000000l

static struct {
	pthread_cond_t cond;
	struct op *waiting; /* linked by queued */
	long pause;
	bool running;
} poller = {.cond = PTHREAD_COND_INITIALIZER};

static bool satisfied(const struct CUstreamMemOpWaitValueParams_st *w, bool wide)
{
	uint64_t word, value = wide ? w->value64 : w->value;
	int64_t ahead;

	if (wide)
		word = __atomic_load_n((const uint64_t *)w->address, __ATOMIC_SEQ_CST);
	else
		word = __atomic_load_n((const uint32_t *)w->address, __ATOMIC_SEQ_CST);
	switch (w->flags & 3u) {
	case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic */
		ahead = wide ? (int64_t)(word - value) : (int32_t)(uint32_t)(word - value);
		return ahead >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return word == value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (word & value) != 0;
	default:
		return (wide ? ~(word | value) : (uint64_t)(uint32_t) ~(word | value)) != 0;
	}
}

/* False: not yet. */
static bool do_one(const CUstreamBatchMemOpParams *p)
{
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return satisfied(&p->waitValue, false);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return satisfied(&p->waitValue, true);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		__atomic_store_n((uint32_t *)p->writeValue.address, p->writeValue.value,
				 __ATOMIC_SEQ_CST);
		return true;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		__atomic_store_n((uint64_t *)p->writeValue.address, p->writeValue.value64,
				 __ATOMIC_SEQ_CST);
		return true;
	default: /* barriers: everything here is sequentially consistent */
		return true;
	}
}

static bool advance(struct op *op)
{
	while (op->memops.next < op->work.memops.count) {
		if (!do_one(&op->work.memops.ops[op->memops.next]))
			return false;
		op->memops.next++;
		poller.pause = POLL_MIN_NS; /* others may wait for this word */
	}
	return true;
}

static void poll_all(void)
{
	struct op **at = &poller.waiting;

	while (*at) {
		struct op *op = *at;

		if (context_stopped(op->work.ctx) || !advance(op)) {
			at = &op->queued;
			continue;
		}
		*at = op->queued;
		op_done(op); /* may put more on the front of the list */
		at = &poller.waiting;
	}
}

static void *poll_run(void *data)
{
	(void)data;
	prctl(PR_SET_TIMERSLACK, 1000ul);
	pthread_mutex_lock(&sim.lock);
	for (;;) {
		struct timespec pause = {.tv_nsec = poller.pause};

		if (!poller.waiting) {
			pthread_cond_wait(&poller.cond, &sim.lock);
			continue;
		}
		pthread_mutex_unlock(&sim.lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&sim.lock);
		poller.pause += poller.pause / 4;
		if (poller.pause > POLL_MAX_NS)
			poller.pause = POLL_MAX_NS;
		contexts_check();
		poll_all();
	}
	return NULL;
}

static void start_memops(struct op *op)
{
	if (advance(op)) {
		op_done(op);
		return;
	}
	op->queued = poller.waiting;
	poller.waiting = op;
	poller.pause = POLL_MIN_NS;
	if (!poller.running)
		poller.running = thread_start(poll_run, NULL);
	if (!poller.running)
		context_fault(op->work.ctx, CUDA_ERROR_OUT_OF_MEMORY);
	else
		pthread_cond_signal(&poller.cond);
}

static void cancel_memops(struct op *op)
{
	struct op **at = &poller.waiting;

	while (*at && *at != op)
		at = &(*at)->queued;
	if (!*at)
		return;
	*at = op->queued;
	op_done(op);
}

const struct op_type memops_type = {.start = start_memops, .cancel = cancel_memops};

static CUresult check_one(const CUstreamBatchMemOpParams *p)
{
	bool wide = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
		    p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	size_t size = wide ? 8 : 4;

	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if (p->waitValue.flags & ~(3u | CU_STREAM_WAIT_VALUE_FLUSH) ||
		    p->waitValue.address % size || !range_allows(p->waitValue.address, size, false))
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (p->writeValue.flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER ||
		    p->writeValue.address % size ||
		    !range_allows(p->writeValue.address, size, true))
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
	case CU_STREAM_MEM_OP_BARRIER:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult memops_work(struct work *out, struct context *ctx, unsigned count,
		     const CUstreamBatchMemOpParams *ops, unsigned flags)
{
	CUstreamBatchMemOpParams *copy;

	if (!count || count > MEMOPS_MAX || !ops || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		RETURN_IF(check_one(&ops[i]));
	copy = malloc(count * sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, ops, count * sizeof(*copy));
	*out = (struct work){.kind = WORK_MEMOPS, .ctx = ctx, .memops = {.count = count}};
	out->memops.ops = copy;
	return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops,
			       unsigned int flags)
{
	API_ENTER();
	struct stream *s;
	struct work work;

	RETURN_IF(stream_get(&s, stream));
	RETURN_IF(memops_work(&work, s->ctx, count, ops, flags));
	return stream_submit(s, &work, NULL);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops,
			    unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream, count, ops, flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
			     unsigned int flags)
{
	CUstreamBatchMemOpParams op = {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
						     .address = address,
						     .value = value,
						     .flags = flags}};

	return cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
			     unsigned int flags)
{
	CUstreamBatchMemOpParams op = {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
						     .address = address,
						     .value64 = value,
						     .flags = flags}};

	return cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
			      unsigned int flags)
{
	CUstreamBatchMemOpParams op = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
						      .address = address,
						      .value = value,
						      .flags = flags}};

	return cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
			      unsigned int flags)
{
	CUstreamBatchMemOpParams op = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
						      .address = address,
						      .value64 = value,
						      .flags = flags}};

	return cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}
