/* Throttle (GLoop): nothing but scheduling points. done[b]: points that block b has passed, to within
 * SHOWN; at the end all. *@shown: those of block 0, in the host's memory. */
#include <weir/loop.cuh>

#define SHOWN 1024

struct throttle {
	uint64_t points; /* to pass */
	unsigned long long *done, *shown;
};

static __device__ void show(const throttle &t, uint64_t passed)
{
	if (threadIdx.x != 0)
		return;
	t.done[blockIdx.x] = passed;
	if (blockIdx.x == 0)
		*static_cast<volatile unsigned long long *>(t.shown) = passed;
}

static __device__ void post(weir::loop &l, throttle t, uint64_t passed)
{
	passed++;
	if (passed % SHOWN == 0 || passed == t.points)
		show(t, passed);
	if (passed < t.points)
		l.post_task([=](weir::loop &later) { post(later, t, passed); });
}

/* Each point is a callback. */
extern "C" __global__ void throttle_post(weir::loop_args args, throttle t)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) { post(l, t, 0); });
}

static __device__ void look(weir::loop &l, throttle t, uint64_t passed)
{
	while (passed < t.points) {
		passed++;
		if (passed % SHOWN == 0)
			show(t, passed);
		if (l.post_task_if_necessary([=](weir::loop &later) { look(later, t, passed); }))
			return;
	}
	show(t, passed);
}

/* Each point only looks whether a callback is needed. */
extern "C" __global__ void throttle_look(weir::loop_args args, throttle t)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) { look(l, t, 0); });
}

/* Each point is a launch. */
extern "C" __global__ void throttle_split(throttle t)
{
	show(t, t.done[blockIdx.x] + 1);
}
