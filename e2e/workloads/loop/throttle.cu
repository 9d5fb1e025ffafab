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

static __device__ void post(weir::loop &l, throttle t, uint64_t passed);
static __device__ void look(weir::loop &l, throttle t, uint64_t passed);

/* The callback that goes on from a number of points. The kernel begins with it, too: a copy of its
 * code for the beginning would be compiled on its own, and a point took 4 % longer there (H100).
 * So points told less of a loop's time until its kernel had left once. */
template <void (*pass)(weir::loop &, throttle, uint64_t)> struct further {
	throttle t;
	uint64_t passed;

	__device__ void operator()(weir::loop &l) const
	{
		pass(l, t, passed);
	}
};

template <void (*pass)(weir::loop &, throttle, uint64_t)>
static __device__ void run(weir::loop_args args, throttle t)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) { l.post_task(further<pass>{t, 0}); });
}

static __device__ void post(weir::loop &l, throttle t, uint64_t passed)
{
	passed++;
	if (passed % SHOWN == 0 || passed == t.points)
		show(t, passed);
	if (passed < t.points)
		l.post_task(further<post>{t, passed});
}

/* Each point is a callback. */
extern "C" __global__ void throttle_post(weir::loop_args args, throttle t)
{
	run<post>(args, t);
}

static __device__ void look(weir::loop &l, throttle t, uint64_t passed)
{
	while (passed < t.points) {
		passed++;
		if (passed % SHOWN == 0)
			show(t, passed);
		if (l.post_task_if_necessary(further<look>{t, passed}))
			return;
	}
	show(t, passed);
}

/* Each point only looks whether a callback is needed. */
extern "C" __global__ void throttle_look(weir::loop_args args, throttle t)
{
	run<look>(args, t);
}

/* Each point is a launch. */
extern "C" __global__ void throttle_split(throttle t)
{
	show(t, t.done[blockIdx.x] + 1);
}
