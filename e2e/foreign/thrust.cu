/* Instances of Thrust's algorithms on the device. Nothing here runs: nvcc compiles their kernels to
 * PTX. */
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/find.h>
#include <thrust/for_each.h>
#include <thrust/gather.h>
#include <thrust/inner_product.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include <cstdint>

template <typename T> struct twice {
	__host__ __device__ T operator()(const T &x) const
	{
		return x + x;
	}
};

template <typename T> struct is_large {
	__host__ __device__ bool operator()(const T &x) const
	{
		return x > T(7);
	}
};

template <typename T> struct add_to {
	__host__ __device__ void operator()(T &x) const
	{
		x = x + T(1);
	}
};

template <typename T> void map(T *in, T *out, const int *places, int n)
{
	auto on = thrust::device;

	thrust::fill(on, out, out + n, T(1));
	thrust::sequence(on, out, out + n);
	thrust::transform(on, in, in + n, out, twice<T>{});
	thrust::transform(on, in, in + n, out, out, thrust::plus<T>{});
	thrust::for_each(on, out, out + n, add_to<T>{});
	thrust::gather(on, places, places + n, in, out);
	thrust::scatter(on, in, in + n, places, out);
	thrust::adjacent_difference(on, in, in + n, out);
	thrust::lower_bound(on, in, in + n, out, out + n, out);
}

template <typename T> T fold(T *in, T *out, int n)
{
	auto on = thrust::device;

	thrust::inclusive_scan(on, in, in + n, out);
	thrust::exclusive_scan(on, in, in + n, out, T(0), thrust::maximum<T>{});
	thrust::inclusive_scan_by_key(on, in, in + n, in, out);
	thrust::reduce_by_key(on, in, in + n, in, out, out);
	return thrust::reduce(on, in, in + n) + thrust::inner_product(on, in, in + n, out, T(0)) +
	       thrust::transform_reduce(on, in, in + n, twice<T>{}, T(0), thrust::plus<T>{}) +
	       *thrust::min_element(on, in, in + n) + *thrust::max_element(on, in, in + n) +
	       T(thrust::count_if(on, in, in + n, is_large<T>{})) +
	       *thrust::find_if(on, in, in + n, is_large<T>{});
}

template <typename T> void select(T *in, T *out, int n)
{
	auto on = thrust::device;

	thrust::copy_if(on, in, in + n, out, is_large<T>{});
	thrust::remove_if(on, in, in + n, is_large<T>{});
	thrust::partition(on, in, in + n, is_large<T>{});
	thrust::stable_partition_copy(on, in, in + n, out, out + n, is_large<T>{});
	thrust::unique(on, in, in + n);
	thrust::unique_by_key(on, in, in + n, out);
}

template <typename T> void order(T *in, T *out, int n)
{
	auto on = thrust::device;

	thrust::sort(on, in, in + n);
	thrust::sort(on, in, in + n, thrust::greater<T>{});
	thrust::stable_sort_by_key(on, in, in + n, out);
	thrust::merge(on, in, in + n, in, in + n, out);
	thrust::set_union(on, in, in + n, in, in + n, out);
	thrust::set_intersection(on, in, in + n, in, in + n, out);
	thrust::set_difference(on, in, in + n, in, in + n, out);
}

template <typename T> void everything(void *p, const int *places, int n)
{
	auto *in = static_cast<T *>(p);

	map(in, in + n, places, n);
	in[0] = fold(in, in + n, n);
	select(in, in + n, n);
	order(in, in + n, n);
}

template void everything<int8_t>(void *p, const int *places, int n);
template void everything<int32_t>(void *p, const int *places, int n);
template void everything<int64_t>(void *p, const int *places, int n);
template void everything<float>(void *p, const int *places, int n);
template void everything<double>(void *p, const int *places, int n);
