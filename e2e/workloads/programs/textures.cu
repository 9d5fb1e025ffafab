/* A picture in a CUDA array, read through two textures: texel by texel beyond its edges, and
 * halfway between texels, where the filter's weights are exact. */
#include "program.cuh"

#define SIDE 16u /* of a block */

__global__ void read_texture(cudaTextureObject_t exact, cudaTextureObject_t smooth, float *to,
			     int width)
{
	int x = (int)(blockIdx.x * SIDE + threadIdx.x), y = (int)(blockIdx.y * SIDE + threadIdx.y);
	float sum = 0;

	for (int k = -2; k <= 2; k++)
		sum += tex2D<float>(exact, (float)(x + k) + 0.5f, (float)(y - k) + 0.5f);
	to[y * width + x] = sum * 4 + tex2D<float>(smooth, (float)x + 1.0f, (float)y + 1.0f);
}

static cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureFilterMode filter)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc texture = {};
	cudaTextureObject_t object;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
	texture.filterMode = filter;
	texture.readMode = cudaReadModeElementType;
	CHECK(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
	return object;
}

/* Small whole numbers: all sums are exact. */
static float texel(int x, int y, int side)
{
	x = std::clamp(x, 0, side - 1);
	y = std::clamp(y, 0, side - 1);
	return (float)(mixed((uint32_t)(y * side + x)) % 1024);
}

static float expected_at(int x, int y, int side)
{
	float sum = 0, four;

	for (int k = -2; k <= 2; k++)
		sum += texel(x + k, y - k, side);
	four = texel(x, y, side) + texel(x + 1, y, side) + texel(x, y + 1, side) +
	       texel(x + 1, y + 1, side);
	return sum * 4 + four / 4;
}

int main(int argc, char **argv)
{
	program program("textures", argc, argv);
	int side = (int)(SIDE * program.size(2, 128));
	size_t n = (size_t)side * (size_t)side, row = (size_t)side * sizeof(float);
	std::vector<float> picture(n), expected(n);
	device_array<float> to(n);
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaArray_t array;

	for (int y = 0; y < side; y++) {
		for (int x = 0; x < side; x++) {
			picture[(size_t)(y * side + x)] = texel(x, y, side);
			expected[(size_t)(y * side + x)] = expected_at(x, y, side);
		}
	}
	CHECK(cudaMallocArray(&array, &format, (size_t)side, (size_t)side));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, picture.data(), row, row, (size_t)side,
				  cudaMemcpyHostToDevice));

	cudaTextureObject_t exact = texture_of(array, cudaFilterModePoint);
	cudaTextureObject_t smooth = texture_of(array, cudaFilterModeLinear);

	while (program.goes_on()) {
		CHECK(cudaMemset(to.data, 0, n * sizeof(float)));
		for (unsigned k = 0; k < 20; k++)
			read_texture<<<dim3(side / SIDE, side / SIDE), dim3(SIDE, SIDE)>>>(
				exact, smooth, to.data, side);
		CHECK(cudaGetLastError());
		program.check(to.get(), expected);
	}
	CHECK(cudaDestroyTextureObject(smooth));
	CHECK(cudaDestroyTextureObject(exact));
	CHECK(cudaFreeArray(array));
	return program.right();
}
