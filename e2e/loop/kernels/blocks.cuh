/* Logical blocks, shared out among those of a loop. */
#pragma once

#include "out.cuh"

/* n logical blocks on those of the loop. out[0]: that ran; out[1]: sum of their numbers; out[2]: a
 * ticket; out[3]: blocks of the loop that are done. */
namespace {
template <uint32_t Chunk> __device__ void share_out(const weir::loop_args &args, uint64_t *out, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		weir::each_block<Chunk>(
			l, reinterpret_cast<uint32_t *>(out + 2), static_cast<uint32_t>(n),
			[=](loop &, uint32_t i) {
				add(out, 1);
				add(out + 1, i);
			},
			[=](loop &) { add(out + 3, 1); });
	});
}
} // namespace
extern "C" __global__ void shared_out(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	share_out<1>(args, out, n);
}
extern "C" __global__ void shared_out_by_four(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	share_out<4>(args, out, n);
}
/* The same without callbacks, and so without out[3]. */
extern "C" __global__ void shared_out_alone(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run_each_block<4>(reinterpret_cast<uint32_t *>(out + 2), static_cast<uint32_t>(n), [=](loop &, uint32_t i) {
		add(out, 1);
		add(out + 1, i);
	});
}
/* out[0]: bodies that ran; out[1]: the ticket; out[16...]: of each body its number, and the ticket as it saw
 * it, in the order in which they ran. For one block. */
extern "C" __global__ void drawn_ahead(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	uint32_t *ticket = reinterpret_cast<uint32_t *>(out + 1);
	loop main(args);

	main.run_each_block(ticket, static_cast<uint32_t>(n), [=](loop &, uint32_t i) {
		uint64_t *of = out + 16 + 2 * *out;
		set(of, i);
		set(of + 1, *static_cast<volatile uint32_t *>(ticket));
		__syncthreads();
		add(out, 1);
	});
}

/* Bodies of ten steps, in any of which a warp may stop. out[0]: steps of all warps; out[1]: the ticket;
 * out[16...]: of each thread, its step and the number of its body, from 1 on. */
extern "C" __global__ void long_bodies(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	uint32_t *saved = reinterpret_cast<uint32_t *>(out + 16 + threadIdx.x), step = saved[0], number = saved[1];
	loop main(args);

	main.run_each_block<2>(
		reinterpret_cast<uint32_t *>(out + 1), static_cast<uint32_t>(n),
		[&](loop &l, uint32_t i) {
			if (number != i + 1)
				step = 0;
			number = i + 1;
			while (step < 10) {
				step++;
				if (threadIdx.x % 32 == 0)
					atomicAdd(reinterpret_cast<unsigned long long *>(out), 1ull);
				if (l.warp_must_leave())
					return false;
			}
			return true;
		},
		[&] {
			saved[0] = step;
			saved[1] = number;
		});
}
