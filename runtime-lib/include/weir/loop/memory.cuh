/* What the device side of a loop is made of: numbers of threads and blocks, and accesses to memory
 * that other blocks and the host use at the same time. Not for programs: they include
 * weir/loop.cuh.
 *
 * Accesses here are relaxed and go around the L1 cache. What orders them stands beside the fences:
 * a block's requests before its doorbell, a batch of answers before the bits that tell of them, a
 * block's state before it counts as having left. */
#pragma once

#include <cstdint>

namespace weir
{
namespace detail
{

template <class T> inline __device__ T peek(const T *p)
{
	return *static_cast<const volatile T *>(p);
}
template <class T> inline __device__ void poke(T *p, T value)
{
	*static_cast<volatile T *>(p) = value;
}
/* Two words that are read in one access. */
struct alignas(16) pair {
	uint64_t low, high;
};
inline __device__ pair peek(const pair *p)
{
	pair words;
	asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];"
		     : "=l"(words.low), "=l"(words.high)
		     : "l"(p)
		     : "memory");
	return words;
}

/* Both order for reading and for writing; __threadfence() would order more, and take longer. */
inline __device__ void fence_gpu()
{
	asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
inline __device__ void fence_system()
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* True: @p was @old, and is @next. What its last holder wrote before give() can be read. */
inline __device__ bool take(uint64_t *p, uint64_t old, uint64_t next)
{
	uint64_t was;
	asm volatile("atom.acquire.gpu.global.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(was)
		     : "l"(__cvta_generic_to_global(p)), "l"(old), "l"(next)
		     : "memory");
	return was == old;
}
inline __device__ void give(uint64_t *p, uint64_t value)
{
	asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
		     "l"(value)
		     : "memory");
}

inline __device__ uint64_t now()
{
	uint64_t ns;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}
inline __device__ bool first_thread()
{
	return threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0;
}
inline __device__ uint32_t thread()
{
	return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
inline __device__ uint32_t threads()
{
	return blockDim.x * blockDim.y * blockDim.z;
}
inline __device__ uint32_t block()
{
	return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
inline __device__ uint32_t blocks()
{
	return gridDim.x * gridDim.y * gridDim.z;
}
inline __device__ void barrier()
{
	__syncthreads();
}

/* Addresses in shared memory have 32 bits. What lies there is aligned to 16 bytes. */
inline __device__ uint32_t shared_address(const void *p)
{
	return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
template <class T> inline __device__ T &shared_at(uint32_t address)
{
	return *static_cast<T *>(__builtin_assume_aligned(__cvta_shared_to_generic(address), 16));
}
/* Two words in one access: the compiler would wait for the first one before it reads the other. */
inline __device__ pair shared_pair(const void *p)
{
	pair words;
	asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];"
		     : "=l"(words.low), "=l"(words.high)
		     : "r"(shared_address(p))
		     : "memory");
	return words;
}

inline __device__ bool is_aligned(const void *p, uint32_t to)
{
	return (reinterpret_cast<uintptr_t>(p) & (to - 1)) == 0;
}

/* By all threads. 16 bytes at a time where both are aligned. */
inline __device__ void copy(void *to, const void *from, uint64_t size)
{
	uint64_t done = 0;

	if (is_aligned(to, 16) && is_aligned(from, 16)) {
		const uint4 *wide = static_cast<const uint4 *>(from);
		for (uint64_t i = thread(); i < size / 16; i += threads())
			static_cast<uint4 *>(to)[i] = wide[i];
		done = size & ~uint64_t{15};
	}
	for (uint64_t i = done + thread(); i < size; i += threads())
		static_cast<uint8_t *>(to)[i] = static_cast<const uint8_t *>(from)[i];
}

/* Inline data of a slot, as the host wrote it: never from a cache. It is aligned, @to need not be.
 * Over PCIe 16 bytes at a time are read: a read takes as long for one. */
inline __device__ void copy_in(void *to, const uint8_t *from, uint32_t size)
{
	const pair *words = reinterpret_cast<const pair *>(from);
	uint8_t *bytes = static_cast<uint8_t *>(to);
	bool aligned = is_aligned(to, sizeof(pair));

	for (uint32_t i = thread(); i < size / sizeof(pair); i += threads()) {
		pair word = peek(words + i);
		if (aligned)
			static_cast<pair *>(to)[i] = word;
		else
			memcpy(bytes + i * sizeof(pair), &word, sizeof(pair));
	}
	for (uint32_t i = size / sizeof(pair) * sizeof(pair) + thread(); i < size; i += threads())
		bytes[i] = peek(from + i);
}

} // namespace detail
} // namespace weir
