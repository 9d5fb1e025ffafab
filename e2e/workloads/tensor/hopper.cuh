/* Instructions of sm_90a that CUDA C++ has no names for: mbarriers, bulk copies, tensor maps, wgmma. */
#pragma once

struct alignas(64) tensor_map {
	unsigned long long opaque[16]; /* CUtensorMap */
};

__device__ inline unsigned shared_address(const void *pointer)
{
	return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ inline void mbarrier_init(unsigned barrier, unsigned count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ inline void mbarrier_invalidate(unsigned barrier)
{
	asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ inline void mbarrier_arrive(unsigned barrier)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* This block's number in its cluster. */
__device__ inline unsigned block_rank()
{
	unsigned rank;

	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	return rank;
}

/* At the mbarrier of another block of the cluster. */
__device__ inline void mbarrier_arrive_at(unsigned barrier, unsigned rank)
{
	asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;\n"
		     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote]; }" ::"r"(barrier), "r"(rank)
		     : "memory");
}

/* A barrier of so many threads. */
__device__ inline void barrier_of(unsigned number, unsigned threads)
{
	asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

__device__ inline void mbarrier_expect(unsigned barrier, unsigned bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ inline void mbarrier_wait(unsigned barrier, unsigned parity)
{
	asm volatile("{ .reg .pred done;\n"
		     "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		     "@done bra over; bra again; over: }" ::"r"(barrier), "r"(parity) : "memory");
}

/* The asynchronous proxy sees initialised mbarriers; what was stored to shared memory. */
__device__ inline void fence_mbarriers()
{
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void fence_proxy()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void bulk_load(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
		     "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

__device__ inline void bulk_store(void *to, unsigned from, unsigned bytes)
{
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* The stores' sources may be overwritten, except for those of the last @groups. */
template <int groups> __device__ inline void bulk_wait_read()
{
	asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}

__device__ inline void tensor_load(unsigned to, const tensor_map *map, int x, int y, unsigned barrier)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		     " [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}

__device__ inline void tensor_store(const tensor_map *map, unsigned from, int x, int y)
{
	asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
		     "r"(x), "r"(y), "r"(from) : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* A matrix in shared memory: rows of 128 bytes, swizzled by 128 bytes. */
__device__ inline unsigned long long matrix_at(unsigned address)
{
	return (address & 0x3ffffull) >> 4 | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

__device__ inline void wgmma_fence()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void wgmma_commit()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int groups> __device__ inline void wgmma_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

/* The compiler must not read @d before. */
template <int n> __device__ inline void wgmma_settle(float (&d)[n])
{
#pragma unroll
	for (int i = 0; i < n; i++)
		asm volatile("" : "+f"(d[i])::"memory");
}

#define D8(d, k) "+f"(d[k]), "+f"(d[k + 1]), "+f"(d[k + 2]), "+f"(d[k + 3]), "+f"(d[k + 4]), "+f"(d[k + 5]), \
		"+f"(d[k + 6]), "+f"(d[k + 7])

/* @d: 64 rows of 64 columns, += 64 x 16 of @a times 16 x 64 of @b; @add 0: = */
__device__ inline void wgmma_64(float (&d)[32], unsigned long long a, unsigned long long b, int add)
{
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
		     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
		     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
		     "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
		     : D8(d, 0), D8(d, 8), D8(d, 16), D8(d, 24)
		     : "l"(a), "l"(b), "r"(add));
}

/* The same of 128 columns and bfloat16. */
__device__ inline void wgmma_128(float (&d)[64], unsigned long long a, unsigned long long b, int add)
{
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
		     "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
		     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
		     "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
		     "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "
		     "%59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0; }"
		     : D8(d, 0), D8(d, 8), D8(d, 16), D8(d, 24), D8(d, 32), D8(d, 40), D8(d, 48), D8(d, 56)
		     : "l"(a), "l"(b), "r"(add));
}

/* setmaxnreg: a warp group gives registers back, or takes what another has given back. */
template <int registers> __device__ inline void registers_release()
{
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers> __device__ inline void registers_take()
{
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
