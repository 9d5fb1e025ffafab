/* Buffers of a context whose size the program sets: the heap of malloc() in kernels, the buffer of
 * printf(), and a stack for each thread that the device can run at a time. Each context has them
 * from the start, so only what exceeds the driver's default is charged. */
#include "memory/memory-account.h"
#include "memory/memory.h"
#include "shim/thread.h"

static const struct buffer {
	CUlimit limit;
	enum record_kind kind;
	uint64_t given; /* bytes, by default */
} buffers[] = {
	{CU_LIMIT_MALLOC_HEAP_SIZE, RECORD_HEAP, 8 << 20},
	{CU_LIMIT_PRINTF_FIFO_SIZE, RECORD_FIFO, 1 << 20},
	{CU_LIMIT_STACK_SIZE, RECORD_STACK, 1 << 10},
};

/* Of the counts; never held over a driver call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t calls; /* that have begun */
static unsigned running;

void memory_limit_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	running = 0;
}

/* A call that sets a size. */
struct resize {
	struct memory_claim claim; /* its size: bytes to be charged if the call succeeds */
	const struct buffer *buffer;
	uint64_t former; /* bytes that were charged */
	uint64_t number;
	bool alone;
};

/* Of the current context: how many there are of a buffer. */
static uint64_t number_of(const struct buffer *buffer)
{
	CUdevice device;

	if (buffer->limit != CU_LIMIT_STACK_SIZE || real(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
		return 1;
	unsigned threads = (unsigned)driver_attribute(
		device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
	return threads *
	       (uint64_t)driver_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

/* Whole chunks, so that differences can be charged and given back. */
static uint64_t charge_of(const struct buffer *buffer, uint64_t size)
{
	uint64_t more = size > buffer->given ? size - buffer->given : 0;

	return account_chunks(saturating_mul(more, number_of(buffer)));
}

/* Takes the former charge out of the table, so that only one thread has it. */
static void resize_begin(struct resize *resize)
{
	struct record record;

	locked(&lock);
	resize->number = ++calls;
	resize->alone = running++ == 0;
	if (table_take(resize->buffer->kind, (uintptr_t)resize->claim.context, &record))
		resize->former = record.size;
}

/* The context is charged for @bytes, besides what another call has left. */
static void keep(const struct resize *resize, uint64_t bytes)
{
	struct record other, record = {.kind = resize->buffer->kind,
				       .key = (uintptr_t)resize->claim.context,
				       .ledger = resize->claim.ledger,
				       .size = bytes,
				       .context = resize->claim.context};

	if (table_take(record.kind, record.key, &other))
		record.size += other.size;
	if (record.size)
		table_put(&record);
}

/* Of two calls at the same time it is not known which the driver heard last. Then the larger size
 * stays charged, until a later call. */
static void resize_end(const struct resize *resize, uint64_t charged, CUresult result)
{
	pthread_mutex_lock(&lock);
	bool alone = resize->alone && resize->number == calls;
	running--;
	uint64_t size = result != CUDA_SUCCESS ? resize->former
			: alone                ? resize->claim.size
					       : charged;
	keep(resize, size);
	pthread_mutex_unlock(&lock);
	if (charged > size)
		ledger_drop(resize->claim.ledger, charged - size);
}

static CUresult resize_buffer(struct resize *resize, CUlimit limit, size_t value)
{
	uint64_t charged, wanted = resize->claim.size;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	resize_begin(resize);
	charged = resize->former;
	if (wanted <= charged || ledger_take(resize->claim.ledger, wanted - charged)) {
		charged = larger(wanted, charged);
		result = real(cuCtxSetLimit)(limit, value);
	}
	resize_end(resize, charged, result);
	return result;
}

EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct resize resize = {0};

	driver_ready();
	for (size_t i = 0; i < countof(buffers); i++)
		if (buffers[i].limit == limit)
			resize.buffer = &buffers[i];
	resize.claim.ledger = resize.buffer ? ledger_here() : NULL;
	if (!resize.claim.ledger || real(cuCtxGetCurrent)(&resize.claim.context) != CUDA_SUCCESS)
		return real(cuCtxSetLimit)(limit, value);
	resize.claim.size = charge_of(resize.buffer, value);
	return resize_buffer(&resize, limit, value);
}
