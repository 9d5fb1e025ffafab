/* Throttle (GLoop): nothing but scheduling points. done[b]: points so far of block b. *@shown: those
 * of block 0, in the host's memory, every SHOWN points. */
#include <weir/loop.cuh>

#define SHOWN 1024

static __device__ void count(unsigned long long *done, unsigned long long *shown)
{
	if (threadIdx.x != 0)
		return;
	unsigned long long n = ++done[blockIdx.x];

	if (blockIdx.x == 0 && n % SHOWN == 0)
		*static_cast<volatile unsigned long long *>(shown) = n;
}

static __device__ void post(weir::loop &l, uint64_t left, unsigned long long *done, unsigned long long *shown)
{
	count(done, shown);
	if (left > 1)
		l.post_task([=](weir::loop &later) { post(later, left - 1, done, shown); });
}

/* Each point is a callback. */
extern "C" __global__ void throttle_post(weir::loop_args args, uint64_t points, unsigned long long *done,
					 unsigned long long *shown)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) { post(l, points, done, shown); });
}

static __device__ void look(weir::loop &l, uint64_t left, unsigned long long *done, unsigned long long *shown)
{
	for (; left; left--) {
		count(done, shown);
		if (l.post_task_if_necessary([=](weir::loop &later) { look(later, left - 1, done, shown); }))
			return;
	}
}

/* Each point only looks whether a callback is needed. */
extern "C" __global__ void throttle_look(weir::loop_args args, uint64_t points, unsigned long long *done,
					 unsigned long long *shown)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) { look(l, points, done, shown); });
}

/* Each point is a launch. */
extern "C" __global__ void throttle_split(unsigned long long *done, unsigned long long *shown)
{
	count(done, shown);
}
