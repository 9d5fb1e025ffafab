/* What loops find goes to out[]; the blocks add up, unless only one has a say. */
#pragma once

#include <weir/loop.cuh>

using weir::loop;

namespace {

__device__ void add(uint64_t *out, uint64_t value)
{
	if (threadIdx.x == 0)
		atomicAdd(reinterpret_cast<unsigned long long *>(out), value);
}

__device__ void set(uint64_t *out, int64_t value)
{
	if (threadIdx.x == 0)
		*out = static_cast<uint64_t>(value);
}

} // namespace
