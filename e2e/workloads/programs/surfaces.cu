/* The game of life on a torus, read and written through surfaces of two CUDA arrays. */
#include "program.cuh"

#define SIDE        16u /* of a block */
#define GENERATIONS 30u /* even: the result is in the first array */

__global__ void live(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int side)
{
	int x = (int)(blockIdx.x * SIDE + threadIdx.x), y = (int)(blockIdx.y * SIDE + threadIdx.y),
	    alive = 0;

	for (int dy = -1; dy <= 1; dy++)
		for (int dx = -1; dx <= 1; dx++)
			if (dx || dy)
				alive += surf2Dread<uchar1>(from, (x + dx + side) % side,
							    (y + dy + side) % side)
						 .x;
	int own = surf2Dread<uchar1>(from, x, y).x;

	surf2Dwrite(make_uchar1(alive == 3 || (own && alive == 2)), to, x, y);
}

static std::vector<unsigned char> next_generation(const std::vector<unsigned char> &cells, int side)
{
	std::vector<unsigned char> next(cells.size());

	for (int y = 0; y < side; y++) {
		for (int x = 0; x < side; x++) {
			int alive = 0;

			for (int dy = -1; dy <= 1; dy++)
				for (int dx = -1; dx <= 1; dx++)
					if (dx || dy)
						alive += cells[(size_t)((y + dy + side) % side *
										side +
									(x + dx + side) % side)];
			next[(size_t)(y * side + x)] =
				alive == 3 || (cells[(size_t)(y * side + x)] && alive == 2);
		}
	}
	return next;
}

struct board {
	cudaArray_t array;
	cudaSurfaceObject_t surface;

	explicit board(size_t side)
	{
		cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
		cudaResourceDesc resource = {};

		CHECK(cudaMallocArray(&array, &format, side, side, cudaArraySurfaceLoadStore));
		resource.resType = cudaResourceTypeArray;
		resource.res.array.array = array;
		CHECK(cudaCreateSurfaceObject(&surface, &resource));
	}
	~board()
	{
		cudaDestroySurfaceObject(surface);
		cudaFreeArray(array);
	}
};

int main(int argc, char **argv)
{
	program program("surfaces", argc, argv);
	size_t side = SIDE * program.size(2, 32);
	std::vector<unsigned char> input(side * side), expected, result(side * side);
	board first(side), second(side);
	dim3 grid((unsigned)side / SIDE, (unsigned)side / SIDE), block(SIDE, SIDE);

	for (size_t i = 0; i < input.size(); i++)
		input[i] = mixed((uint32_t)i) & 1;
	expected = input;
	for (unsigned k = 0; k < GENERATIONS; k++)
		expected = next_generation(expected, (int)side);
	while (program.goes_on()) {
		CHECK(cudaMemcpy2DToArray(first.array, 0, 0, input.data(), side, side, side,
					  cudaMemcpyHostToDevice));
		for (unsigned k = 0; k < GENERATIONS; k += 2) {
			live<<<grid, block>>>(first.surface, second.surface, (int)side);
			live<<<grid, block>>>(second.surface, first.surface, (int)side);
		}
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpy2DFromArray(result.data(), side, first.array, 0, 0, side, side,
					    cudaMemcpyDeviceToHost));
		program.check(result, expected);
	}
	return program.right();
}
