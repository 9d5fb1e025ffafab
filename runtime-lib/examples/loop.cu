/* Counts the lines of a file on the GPU; the host side is loop.c. Each block reads parts of 64 KiB of
 * its own, and waits for the next one as a callback: meanwhile the kernel may leave the GPU.
 *
 *     nvcc -std=c++17 -arch=compute_75 -ptx -o loop.ptx loop.cu
 */
#include <weir/loop.cuh>

#define PART (64 << 10)

struct job {
	int file;
	unsigned char *buffer; /* PART bytes of each block */
	unsigned long long *lines;
};

__device__ void read_part(weir::loop &l, job j, uint64_t at)
{
	unsigned char *mine = j.buffer + uint64_t{blockIdx.x} * PART;

	weir::file::read(l, j.file, mine, PART, at, [=](weir::loop &got, int64_t size) {
		unsigned found = 0;
		for (int64_t i = threadIdx.x; i < size; i += blockDim.x)
			found += mine[i] == '\n';
		atomicAdd(j.lines, found);
		if (size == PART)
			read_part(got, j, at + uint64_t{gridDim.x} * PART);
	});
}

extern "C" __global__ void count_lines(weir::loop_args args, const char *path, unsigned char *buffer,
				       unsigned long long *lines)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		weir::file::open(l, path, 0, 0, [=](weir::loop &opened, int64_t file) {
			if (file < 0)
				opened.exit(static_cast<int>(-file));
			else
				read_part(opened, job{static_cast<int>(file), buffer, lines},
					  uint64_t{blockIdx.x} * PART);
		});
	});
}
