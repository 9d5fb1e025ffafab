/* What loops cost. */
#pragma once

#include "out.cuh"

/* What a scheduling point costs: n of them, in each block. out[0]: ns of block 0. */
namespace {
__device__ void end_points(uint64_t *out, uint64_t began)
{
	if (blockIdx.x == 0)
		set(out, static_cast<int64_t>(weir::detail::now() - began));
}
template <class Body> __device__ void post_points(loop &l, uint64_t *out, uint64_t began, uint64_t left, Body body)
{
	body();
	if (left)
		l.post_task([=](loop &later) { post_points(later, out, began, left - 1, body); });
	else
		end_points(out, began);
}
__device__ void look_points(loop &l, uint64_t *out, uint64_t began, uint64_t left)
{
	for (; left; left--)
		if (l.post_task_if_necessary(
			    [=](loop &later) { look_points(later, out, began, left - 1); }))
			return;
	end_points(out, began);
}
} // namespace
extern "C" __global__ void points_post(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { post_points(l, out, weir::detail::now(), n, [] {}); });
}
extern "C" __global__ void points_look(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { look_points(l, out, weir::detail::now(), n); });
}
/* Tasks that do something: all blocks count in one word. */
extern "C" __global__ void points_task(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		post_points(l, out, weir::detail::now(), n, [=] { add(out + 8, 1); });
	});
}
/* What these do, and a barrier, without tasks. */
extern "C" __global__ void points_body(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &) {
		uint64_t began = weir::detail::now();
		for (uint64_t i = 0; i < n; i++) {
			add(out + 8, 1);
			__syncthreads();
		}
		end_points(out, began);
	});
}
/* The same by launches, which pass the state in device memory. */
extern "C" __global__ void points_split(uint64_t *out)
{
	if (blockIdx.x == 0)
		add(out, 1);
}

/* What one point costs. Of block 0: out[0]: ns of all n; out[1]: cycles of all; out[2], out[3]: of the
 * quickest and of the slowest. */
namespace {
struct turns {
	uint64_t began, first, last, least, most;
};
__device__ turns begin_turns()
{
	return {weir::detail::now(), 0, 0, ~0ull, 0};
}
__device__ void turn(turns *t)
{
	uint64_t cycles = static_cast<uint64_t>(clock64()), took = cycles - t->last;

	if (!t->last) {
		t->first = t->last = cycles;
		return;
	}
	t->least = took < t->least ? took : t->least;
	t->most = took > t->most ? took : t->most;
	t->last = cycles;
}
__device__ void end_turns(uint64_t *out, const turns &t)
{
	end_points(out, t.began);
	if (blockIdx.x != 0)
		return;
	set(out + 1, static_cast<int64_t>(t.last - t.first));
	set(out + 2, static_cast<int64_t>(t.least));
	set(out + 3, static_cast<int64_t>(t.most));
}
__device__ void post_turns(loop &l, uint64_t *out, turns t, uint64_t left)
{
	turn(&t);
	if (left)
		l.post_task([=](loop &later) { post_turns(later, out, t, left - 1); });
	else
		end_turns(out, t);
}
__device__ void look_turns(loop &l, uint64_t *out, turns t, uint64_t left)
{
	for (; left; left--) {
		turn(&t);
		if (l.post_task_if_necessary([=](loop &later) { look_turns(later, out, t, left - 1); }))
			return;
	}
	end_turns(out, t);
}
} // namespace
extern "C" __global__ void turns_post(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { post_turns(l, out, begin_turns(), n); });
}
extern "C" __global__ void turns_look(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { look_turns(l, out, begin_turns(), n); });
}

/* n round trips to the host and back, one after the other. out[0]: ns. */
namespace {
__device__ void trip(loop &l, uint64_t *out, uint64_t began, uint64_t left)
{
	if (left)
		weir::timer::after(l, 0, [=](loop &later, int64_t) {
			trip(later, out, began, left - 1);
		});
	else
		set(out, static_cast<int64_t>(weir::detail::now() - began));
}
} // namespace
extern "C" __global__ void round_trips(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x == 0)
			trip(l, out, weir::detail::now(), n);
	});
}
