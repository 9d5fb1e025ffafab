// Less usual parts of CUDA C++ as input for real.sh: calls through pointers, switches, textures,
// matrix units, barriers in memory, clusters, recursion, names in nested scopes. Never executed.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp16.h>

#include <mma.h>
#include <cassert>
#include <cstdio>
namespace cg = cooperative_groups;
struct Shape {
	int kind;
	__device__ virtual float area(float) const = 0;
	__device__ virtual ~Shape()
	{
	}
};
struct Sq : Shape {
	float s;
	__device__ Sq(float a) : s(a)
	{
	}
	__device__ float area(float x) const override
	{
		return s * s * x;
	}
};
struct Ci : Shape {
	float r;
	__device__ Ci(float a) : r(a)
	{
	}
	__device__ float area(float x) const override
	{
		return 3.14f * r * r + x;
	}
};
__global__ void virt(float *o, int n)
{
	Shape *s;
	if (threadIdx.x & 1)
		s = new Sq(2);
	else
		s = new Ci(3);
	o[threadIdx.x] = s->area(n);
	delete s;
	printf("%d %f\n", n, o[0]);
}
typedef float (*fn)(float);
__device__ float f1(float x)
{
	return x + 1;
}
__device__ float f2(float x)
{
	return sinf(x);
}
__device__ fn tab[2] = {f1, f2};
__global__ void fptr(float *o, int k)
{
	o[threadIdx.x] = tab[k](o[threadIdx.x]);
}
__global__ void sw(int *o, int k)
{
	int v = o[threadIdx.x];
	switch (k + v) {
	case 0:
		v = __clz(v);
		break;
	case 1:
		v = v * v;
		o[3] = 1;
		break;
	case 2:
		v = v / 3;
		o[9] = v;
		break;
	case 3:
		v = __popc(v);
		o[1] = 2;
		break;
	case 4:
		v ^= 77;
		o[5] = 5;
		break;
	case 5:
		v = atomicAdd(o, 1);
		break;
	case 6:
		v = __ffs(v);
		o[7] = 3;
		break;
	case 7:
		v = o[v];
		break;
	case 8:
		v = __brev(v);
		o[8] = 9;
		break;
	case 9:
		o[4] = v * 9;
		break;
	case 10:
		return;
	}
	o[threadIdx.x] = v;
}
__global__ void coop(int *o)
{
	cg::grid_group g = cg::this_grid();
	o[g.thread_rank()] = 1;
	g.sync();
	cg::thread_block b = cg::this_thread_block();
	auto t = cg::tiled_partition<16>(b);
	int x = t.shfl_down(o[threadIdx.x], 1);
	t.sync();
	if (t.any(x))
		o[0] = cg::coalesced_threads().size();
}
__global__ void pipe(float *o, const float *i)
{
	__shared__ float s[256];
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;
	if (threadIdx.x == 0)
		init(&bar, blockDim.x);
	__syncthreads();
	cuda::memcpy_async(&s[threadIdx.x], &i[threadIdx.x], cuda::aligned_size_t<4>(4), bar);
	bar.arrive_and_wait();
	o[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void wm(half *a, half *b, float *c)
{
	using namespace nvcuda;
	wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
	wmma::fill_fragment(fc, 0.f);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
__global__ void tex(cudaTextureObject_t t, cudaSurfaceObject_t s, float4 *o)
{
	o[threadIdx.x] = tex2D<float4>(t, threadIdx.x, blockIdx.x);
	float4 v;
	surf2Dread(&v, s, 16 * threadIdx.x, 2);
	o[99] = v;
	surf2Dwrite(v, s, 0, 1);
	float4 q = tex2DLod<float4>(t, 1, 2, 3);
	o[98] = q;
	o[97] = tex2Dgather<float4>(t, 1, 2, 1);
}
__global__ void __launch_bounds__(256, 2) video(unsigned *o)
{
	o[0] = __vadd4(o[1], o[2]);
	o[3] = __vabsdiffu4(o[4], o[5]);
	o[6] = __dp4a(o[1], o[2], 3u);
	o[7] = __byte_perm(o[1], o[2], o[3]);
	unsigned x;
	asm volatile("{ .reg .pred p; .reg .b32 t<3>; setp.ne.u32 p,%1,0; mov.b32 t1,7; @p add.u32 "
		     "t1,t1,1; @!p bra DONE; add.u32 t1,t1,%1; DONE: mov.b32 %0,t1; }"
		     : "=r"(x)
		     : "r"(o[5]));
	asm volatile("{ .reg .pred p; .reg .b32 t<3>; setp.ne.u32 p,%1,0; mov.b32 t1,7; @p add.u32 "
		     "t1,t1,1; @!p bra DONE; add.u32 t1,t1,%1; DONE: mov.b32 %0,t1; }"
		     : "=r"(o[9])
		     : "r"(x));
}
__global__ void big(__int128 *o, double *d, long long *l)
{
	o[0] = o[1] * o[2] + o[3];
	d[0] = pow(d[1], d[2]) + lgamma(d[3]) + d[4] / d[5];
	l[0] = l[1] / l[2];
	__nanosleep(10);
	assert(l[0] != 3);
}
__global__ void vla(int *o, int n)
{
	int a[100];
	for (int i = 0; i < n; i++)
		a[i % 100] = o[i];
	int s = 0;
	for (int i = 0; i < n; i++) {
		s += a[(i * 7) % 100];
		if (s == 3)
			break;
		if (s == 9)
			continue;
		__syncthreads();
		s ^= __syncthreads_or(s);
	}
	o[0] = s + __syncthreads_count(s);
	extern __shared__ int dyn[];
	dyn[n] = s;
	__syncwarp();
	o[2] = dyn[0];
}
__device__ __noinline__ int rec(int n)
{
	return n < 2 ? 1 : rec(n - 1) + rec(n - 2);
}
__global__ void recur(int *o)
{
	o[0] = rec(o[1]);
	int *p = (int *)alloca(o[2]);
	p[0] = 1;
	o[3] = p[o[2] / 4 - 1];
}
template <int N> struct P {
	int a[N];
	char c;
};
__global__ void par(P<7> p, const P<3> q, char c, short s, __grid_constant__ const P<9> g, int *o)
{
	o[threadIdx.x] = p.a[threadIdx.x % 7] + q.a[1] + c + s + g.a[threadIdx.x % 9];
}
#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) clus(int *o)
{
	__shared__ int s[32];
	cg::cluster_group c = cg::this_cluster();
	s[threadIdx.x] = o[threadIdx.x];
	c.sync();
	int *r = c.map_shared_rank(s, c.block_rank() ^ 1);
	o[threadIdx.x] = r[threadIdx.x];
	c.sync();
	asm volatile("griddepcontrol.wait;");
}
#endif
__constant__ float ck[4] = {1, 2, 3, 4};
__managed__ int mg;
__device__ int gl[3] = {1, 2, 3};
__device__ const char *str = "hello \"x\" { ; //";
__global__ void glob(float *o)
{
	o[0] = ck[threadIdx.x & 3] + mg + gl[threadIdx.x % 3] + str[threadIdx.x];
	static int cnt;
	cnt++;
	o[1] = cnt;
}
