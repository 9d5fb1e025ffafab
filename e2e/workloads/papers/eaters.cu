/* GPU eaters (GLoop): kernels that hold the GPU until the host tells them to stop, through a word in
 * its memory. */
#include "arithmetic.h"
#include "eaters.h"

static __device__ unsigned steps(unsigned x, unsigned count)
{
#pragma unroll 1
	for (unsigned k = 0; k < count; k++)
		x = arith_step(x);
	return x;
}

/* Blocks take tasks, each by its ticket, and put those that come of them at the end. @progress: all
 * @total are done. */
extern "C" __global__ void eater_queue(struct queue *queue, unsigned long long *tasks, unsigned *results,
				       unsigned total, const volatile unsigned *stop,
				       volatile unsigned *progress)
{
	__shared__ unsigned long long task;

	for (;;) {
		if (threadIdx.x == 0) {
			unsigned ticket = atomicAdd(&queue->head, 1);

			/* The host's memory is far: a look there only when there is nothing to do. */
			do
				task = ticket < total ? *(volatile unsigned long long *)&tasks[ticket] : 0;
			while (!task && !*stop);
		}
		__syncthreads();
		unsigned value = (unsigned)task, depth = task >> 32;
		__syncthreads();
		if (!depth)
			return;
		atomicXor(&results[threadIdx.x], steps(value + threadIdx.x, QUEUE_STEPS));
		if (threadIdx.x < 2 && depth > 1)
			*(volatile unsigned long long *)&tasks[atomicAdd(&queue->tail, 1)] =
				(unsigned long long)(depth - 1) << 32 | arith_step(value + threadIdx.x);
		__threadfence();
		__syncthreads();
		if (threadIdx.x == 0 && atomicAdd(&queue->done, 1) == total - 1)
			*progress = total;
	}
}

/* Each block answers the requests in its mailbox. */
extern "C" __global__ void eater_server(volatile struct mailbox *boxes, const volatile unsigned *stop)
{
	__shared__ unsigned sums[EATER_THREADS / 32], pending;
	volatile struct mailbox *box = &boxes[blockIdx.x];

	for (unsigned served = 0;; served++) {
		if (threadIdx.x == 0) {
			do
				pending = box->request != served;
			while (!pending && !*stop);
			__threadfence_system();
		}
		__syncthreads();
		if (!pending)
			return;
		unsigned sum = 0;
		for (unsigned i = threadIdx.x; i < PAYLOAD; i += EATER_THREADS)
			sum += steps(box->payload[i], SERVER_STEPS);
		for (unsigned step = 16; step; step /= 2)
			sum += __shfl_down_sync(0xffffffffu, sum, step);
		if (threadIdx.x % 32 == 0)
			sums[threadIdx.x / 32] = sum;
		__syncthreads();
		if (threadIdx.x == 0) {
			for (unsigned warp = 1; warp < EATER_THREADS / 32; warp++)
				sum += sums[warp];
			box->result = sum;
			__threadfence_system();
			box->answer = served + 1;
		}
	}
}

/* In each generation every thread carries its word on and hands it to its left neighbour. Says how
 * many generations each block has made. */
extern "C" __global__ void eater_simulation(unsigned *words, unsigned long long *generations,
					    const volatile unsigned *stop)
{
	__shared__ unsigned ring[EATER_THREADS];
	unsigned i = blockIdx.x * EATER_THREADS + threadIdx.x, x = words[i];
	unsigned long long count = 0;

	while (!__syncthreads_or(threadIdx.x == 0 && *stop)) {
		ring[threadIdx.x] = steps(x, SIMULATION_PERIOD);
		__syncthreads();
		x = ring[(threadIdx.x + 1) % EATER_THREADS];
		count++;
	}
	words[i] = x;
	if (threadIdx.x == 0)
		generations[blockIdx.x] = count;
}
