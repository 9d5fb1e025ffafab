/* Instances of CUB's device-wide algorithms. Nothing here runs: nvcc compiles their kernels to PTX.
 */
#include <cub/cub.cuh>
#include <cuda_fp16.h>

#include <cstdint>

struct pair {
	int32_t key;
	float value;
};

template <typename T> struct is_odd {
	__device__ bool operator()(const T &x) const
	{
		return static_cast<int>(x) & 1;
	}
};

struct by_key {
	__device__ bool operator()(const pair &a, const pair &b) const
	{
		return a.key < b.key;
	}
};

struct longest {
	template <typename T> __device__ T operator()(const T &a, const T &b) const
	{
		return a < b ? b : a;
	}
};

struct twice {
	template <typename T> __device__ T operator()(const T &x) const
	{
		return x + x;
	}
};

struct visit {
	template <typename T> __device__ void operator()(T &x) const
	{
		x = x + x;
	}
};

template <typename T> void reduce_and_scan(T *in, T *out, int *offsets, int n, cudaStream_t s)
{
	size_t bytes = 0;

	cub::DeviceReduce::Sum(nullptr, bytes, in, out, n, s);
	cub::DeviceReduce::Max(nullptr, bytes, in, out, n, s);
	cub::DeviceReduce::ArgMin(nullptr, bytes, in, out, reinterpret_cast<int64_t *>(offsets),
				  static_cast<int64_t>(n), s);
	cub::DeviceReduce::ReduceByKey(nullptr, bytes, offsets, offsets, in, out, offsets,
				       longest{}, n, s);
	cub::DeviceSegmentedReduce::Sum(nullptr, bytes, in, out, n, offsets, offsets + 1, s);
	cub::DeviceScan::ExclusiveSum(nullptr, bytes, in, out, n, s);
	cub::DeviceScan::InclusiveScan(nullptr, bytes, in, out, longest{}, n, s);
	cub::DeviceScan::InclusiveSumByKey(nullptr, bytes, offsets, in, out, n);
}

template <typename T> void choose(T *in, T *out, char *flags, int *count, int n, cudaStream_t s)
{
	size_t bytes = 0;

	cub::DeviceSelect::Flagged(nullptr, bytes, in, flags, out, count, n, s);
	cub::DeviceSelect::If(nullptr, bytes, in, out, count, n, is_odd<T>{}, s);
	cub::DeviceSelect::Unique(nullptr, bytes, in, out, count, n, s);
	cub::DevicePartition::If(nullptr, bytes, in, out, count, n, is_odd<T>{}, s);
	cub::DeviceRunLengthEncode::Encode(nullptr, bytes, in, out, count, count, n, s);
	cub::DeviceRunLengthEncode::NonTrivialRuns(nullptr, bytes, in, count, count, count, n, s);
	cub::DeviceAdjacentDifference::SubtractLeftCopy(nullptr, bytes, in, out, n);
	cub::DeviceTransform::Transform(in, out, n, twice{}, s);
	cub::DeviceFor::ForEachN(in, n, visit{}, s);
}

template <typename K, typename V> void sort(K *keys, V *values, int *offsets, int n, cudaStream_t s)
{
	cub::DoubleBuffer<K> k(keys, keys);
	cub::DoubleBuffer<V> v(values, values);
	size_t bytes = 0;

	cub::DeviceRadixSort::SortKeys(nullptr, bytes, k, n, 0, 8 * sizeof(K), s);
	cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, n, 0, 8 * sizeof(K), s);
	cub::DeviceRadixSort::SortPairsDescending(nullptr, bytes, k, v, n, 0, 8 * sizeof(K), s);
	cub::DeviceSegmentedRadixSort::SortPairs(nullptr, bytes, k, v, n, n, offsets, offsets + 1,
						 0, 8 * sizeof(K), s);
	cub::DeviceSegmentedSort::SortPairs(nullptr, bytes, k, v, n, n, offsets, offsets + 1, s);
	cub::DeviceMergeSort::SortPairs(nullptr, bytes, keys, values, n, longest{}, s);
	cub::DeviceMerge::MergePairs(nullptr, bytes, keys, values, n, keys, values, n, keys, values,
				     longest{}, s);
}

template <typename T> void count(const T *in, int *histogram, int n, cudaStream_t s)
{
	int *histograms[3] = {histogram, histogram, histogram}, levels[3] = {256, 256, 256};
	T low[3] = {}, high[3] = {};
	size_t bytes = 0;

	cub::DeviceHistogram::HistogramEven(nullptr, bytes, in, histogram, 256, low[0], high[0], n,
					    s);
	cub::DeviceHistogram::HistogramRange(nullptr, bytes, in, histogram, 256, low, n, s);
	cub::DeviceHistogram::MultiHistogramEven<4, 3>(nullptr, bytes, in, histograms, levels, low,
						       high, n, s);
}

void everything(void *p, int *offsets, char *flags, int n, cudaStream_t s)
{
	auto *i8 = static_cast<uint8_t *>(p);
	auto *i16 = static_cast<uint16_t *>(p);
	auto *i32 = static_cast<int32_t *>(p);
	auto *i64 = static_cast<int64_t *>(p);
	auto *f32 = static_cast<float *>(p);
	auto *f64 = static_cast<double *>(p);
	auto *pairs = static_cast<pair *>(p);
	size_t bytes = 0;

	reduce_and_scan(i8, i8, offsets, n, s);
	reduce_and_scan(i32, i32, offsets, n, s);
	reduce_and_scan(i64, i64, offsets, n, s);
	reduce_and_scan(f32, f32, offsets, n, s);
	reduce_and_scan(f64, f64, offsets, n, s);
	choose(i8, i8, flags, offsets, n, s);
	choose(i32, i32, flags, offsets, n, s);
	choose(i64, i64, flags, offsets, n, s);
	choose(f32, f32, flags, offsets, n, s);
	sort(i8, i32, offsets, n, s);
	sort(i16, i64, offsets, n, s);
	sort(i32, f32, offsets, n, s);
	sort(i64, i64, offsets, n, s);
	sort(f32, i32, offsets, n, s);
	sort(f64, f64, offsets, n, s);
	count(i8, offsets, n, s);
	count(i32, offsets, n, s);
	count(f32, offsets, n, s);
	cub::DeviceMergeSort::SortKeys(nullptr, bytes, pairs, n, by_key{}, s);
}
