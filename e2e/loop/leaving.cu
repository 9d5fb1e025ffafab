/* A loop that leaves again and again by itself. */
#define WEIR_LOOP_LEAVING
#include <weir/loop.cuh>

using weir::loop;

static __device__ void work(unsigned long long *out, unsigned long long value)
{
	uint64_t began = weir::detail::now();

	while (weir::detail::now() < began + 10000)
		;
	if (threadIdx.x == 0)
		atomicAdd(out, value);
}

static __device__ void count_down(loop &l, unsigned long long *out, uint64_t n)
{
	work(out, 1);
	if (n > 1)
		l.post_task([=](loop &later) { count_down(later, out, n - 1); });
}

/* out[0]: tasks of some microseconds that ran, n in each block. */
extern "C" __global__ void tasks(weir::loop_args args, unsigned long long *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { count_down(l, out, n); });
}

/* out[0]: n bodies of some microseconds, each counts its number; out[1]: the ticket. */
extern "C" __global__ void bodies(weir::loop_args args, unsigned long long *out, const char *, uint64_t n)
{
	loop main(args);
	main.run_each_block(reinterpret_cast<uint32_t *>(out + 1), static_cast<uint32_t>(n),
			    [=](loop &, uint32_t i) { work(out, i); });
}
