/* Image matching with the input and output on the host: block (g, p) compares group g of the queries
 * with part p of the pictures that are on the device. */
#include "images.cuh"

extern "C" __global__ void images_part(const uint8_t *queries, unsigned queries_n, const uint8_t *pictures,
				       unsigned n, unsigned first, image_match *best)
{
	unsigned group = blockIdx.x * IMAGE_GROUP, begin = blockIdx.y * IMAGE_CHUNK;

	images::compare(queries + size_t(group) * IMAGE_BYTES, min(IMAGE_GROUP, queries_n - group),
			pictures + size_t(begin) * IMAGE_BYTES, min(IMAGE_CHUNK, n - begin), first + begin,
			best + group);
}
