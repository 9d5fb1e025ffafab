// Kernels whose masks are made while they run, or name a part of the warp. A lane waits only for the lanes of its mask that
// have not exited: lanes leave the loop one after another and exit, and the others count those that are left. A form that
// lets lanes wait for others that have left the loop hangs.
#define ALL 0xffffffffu

/* Each lane makes @times steps more than the lane class before it, of @classes. */
static __device__ unsigned count_lanes(unsigned mask, unsigned classes, unsigned times)
{
	unsigned last = threadIdx.x % classes * times, sum = 0;

	for (unsigned k = 0; k <= last; k++)
		sum += __popc(__ballot_sync(mask, 1));
	return sum;
}

static __device__ void store(unsigned *out, unsigned sum)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum + blockIdx.x;
}

extern "C" __global__ void masks_active(unsigned *out, unsigned times)
{
	store(out, count_lanes(__activemask(), 5, times));
}

extern "C" __global__ void masks_match(unsigned *out, unsigned times)
{
	store(out, count_lanes(__match_any_sync(ALL, threadIdx.x % 3), 7, times));
}

extern "C" __global__ void masks_ballot(unsigned *out, unsigned times)
{
	unsigned is_one = (threadIdx.x & 5) != 0, ones = __ballot_sync(ALL, is_one);

	store(out, count_lanes(is_one ? ones : ~ones, 6, times));
}

/* Tiles of 16 lanes behind an early return. */
extern "C" __global__ void masks_tiles(unsigned *out, unsigned times, unsigned threads)
{
	unsigned mask = 0xffffu << (threadIdx.x & 16), sum = 0;

	if (threadIdx.x >= threads)
		return;
	for (unsigned k = 0; k < times; k++)
		sum += __popc(__ballot_sync(mask, (threadIdx.x + k) & 1)) + __shfl_sync(mask, threadIdx.x + k, 1, 16);
	store(out, sum);
}
