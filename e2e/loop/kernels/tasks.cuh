/* Tasks, scheduling points, timers, calls, and ends of loops. */
#pragma once

#include "out.cuh"

namespace {

/* Runs itself @n times more. */
__device__ void count_down(loop &l, uint64_t *out, uint64_t n)
{
	add(out, 1);
	if (n)
		l.post_task([=](loop &later) { count_down(later, out, n - 1); });
}

} // namespace

/* out[0]: tasks that ran. */
extern "C" __global__ void tasks(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { count_down(l, out, n); });
}

/* As many callbacks as there is room for. out[0]: that ran; out[1]: that were refused; out[2]: the
 * order in which they ran, a digit each. */
extern "C" __global__ void spill(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		for (uint64_t i = 1; i <= n; i++) {
			int r = l.post_task([=](loop &) {
				add(out, 1);
				if (threadIdx.x == 0)
					out[2] = out[2] * 10 + i;
			});
			if (r == -ENOBUFS)
				add(out + 1, 1);
		}
	});
}

/* Takes all slots, and then comes to n scheduling points. out[0]: points; out[1]: callbacks of the
 * slots; out[2]: those of the points. */
extern "C" __global__ void crowded(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		while (l.has_room())
			l.post_task([=](loop &) { add(out + 1, 1); });
		for (uint64_t i = 0; i < n; i++) {
			add(out, 1);
			if (l.post_task_if_necessary([=](loop &) { add(out + 2, 1); }))
				return;
		}
	});
}

/* out[0]: iterations of all blocks; out[1]: times that a block returned to the loop. */
namespace {
__device__ void spin(loop &l, uint64_t *out, uint64_t i, uint64_t n)
{
	for (; i < n; i++) {
		add(out, 1);
		if (l.post_task_if_necessary([=](loop &later) {
			    add(out + 1, 1);
			    spin(later, out, i + 1, n);
		    }))
			return;
	}
}
} // namespace
extern "C" __global__ void spinner(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { spin(l, out, 0, n); });
}

/* Three timers of n, 2 n and 3 n ns, set in another order. out[0]: which came, a bit each; out[1]: sum
 * of their results; out[2]: that came too early. */
extern "C" __global__ void timers(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		uint64_t set_at = weir::detail::now();
		for (uint64_t k = 0; k < 3; k++) {
			uint64_t i = (k + 1) % 3 + 1;
			weir::timer::after(l, i * n, [=](loop &, int64_t r) {
				if (threadIdx.x == 0) {
					out[0] |= 1 << i;
					out[1] += static_cast<uint64_t>(r);
					out[2] += weir::detail::now() - set_at < i * n;
				}
			});
		}
	});
}

/* Calls function n with 1..5 in 40 bytes; out[0]: its result; out[8..12]: the bytes afterwards. */
extern "C" __global__ void calls(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		if (threadIdx.x < 5)
			out[8 + threadIdx.x] = threadIdx.x + 1;
		__syncthreads();
		weir::host::call(l, static_cast<uint32_t>(n), out + 8, 40,
				 [=](loop &, int64_t r) { set(out, r); });
	});
}

/* Block 0 ends the loop with code n, while the others wait for a timer of an hour. */
extern "C" __global__ void exits(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		weir::timer::after(l, 3600000000000ull, [=](loop &, int64_t) { add(out, 1); });
		if (blockIdx.x == 0)
			l.post_task([=](loop &last) { last.exit(static_cast<int>(n)); });
	});
}

/* Sums 0..n-1 in each thread, with sums saved where the block must leave. out[0]: sum over threads;
 * out[1]: times that it was saved. */
namespace {
__device__ void sum_up(loop &l, uint64_t *out, uint64_t i, uint64_t n, uint64_t sum)
{
	uint64_t *saved = out + 64 + blockIdx.x * blockDim.x + threadIdx.x;

	for (; i < n; i++) {
		sum += i;
		if (l.yield_if_needed([&](loop &leaving) {
			    *saved = sum;
			    add(out + 1, 1);
			    uint64_t next = i + 1;
			    leaving.post_task([=](loop &back) {
				    sum_up(back, out, next, n, out[64 + blockIdx.x * blockDim.x + threadIdx.x]);
			    });
		    }))
			return;
	}
	atomicAdd(reinterpret_cast<unsigned long long *>(out), sum);
}
} // namespace
extern "C" __global__ void sums(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { sum_up(l, out, 0, n, 0); });
}

/* Never comes to a scheduling point. out[0]: counts. */
extern "C" __global__ void monopolist(weir::loop_args args, uint64_t *out, const char *, uint64_t)
{
	loop main(args);
	main.run([=](loop &) {
		for (uint64_t i = 1; blockIdx.x == 0 && threadIdx.x == 0; i++)
			*static_cast<volatile uint64_t *>(out) = i;
		__syncthreads();
	});
}
