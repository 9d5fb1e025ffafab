/* Suffix matching in parts: some bases of a block of queries. */
#include "../papers/suffix.cuh"
#include "parts.cuh"

static __device__ void suffix_part(const suffix_work &work, const parts &p, unsigned n)
{
	unsigned from = n % p.segments * SUFFIX_SEGMENT;

	for (unsigned i = 0; i < SUFFIX_SEGMENT; i++)
		suffix_matches(work, n / p.segments, from + i);
}

SPLIT_PORT(suffix_match,
	   (const unsigned char *text, const unsigned *array, unsigned text_n, const unsigned char *queries,
	    unsigned *results, unsigned count),
	   suffix_part({text, array, text_n, queries, results, count}, p, n))

struct suffix_carry {
	unsigned low, high; /* where in the array the base's suffix would be, */
	unsigned halvings;  /* after so many; */
	unsigned base;      /* the base, in the part; SUFFIX_SEGMENT: all are done */
	unsigned number;    /* of the part, from 1 on */
};

/* Part @n, and piece @i of all. The warps do not wait for each other: a halving takes as long as the slowest
 * of a warp's threads, and a barrier behind every few would make a warp wait for the slowest of all. False: it
 * is to be gone on with. */
static __device__ __forceinline__ bool suffix_piece(weir::loop &l, const suffix_work &work, const parts &p, unsigned n,
						    unsigned i, suffix_carry &carry)
{
	unsigned q = n / p.segments * SUFFIX_THREADS + threadIdx.x;
	unsigned most = 32 - __clz(static_cast<int>(work.n)); /* halvings that work.n places take */
	bool is_query = q < work.count;

	if (carry.number != i + 1)
		carry = {0, work.n, 0, 0, i + 1};
	for (; carry.base < SUFFIX_SEGMENT; carry = {0, work.n, 0, carry.base + 1, i + 1}) {
		unsigned from = n % p.segments * SUFFIX_SEGMENT + carry.base, rest = SUFFIX_QUERY - from;
		const unsigned char *query = work.queries + q * SUFFIX_QUERY + from;

		while (carry.halvings < most) {
#pragma unroll 1
			for (unsigned k = 0; k < SUFFIX_HALVINGS; k++)
				if (is_query && carry.low < carry.high)
					suffix_halve(work, query, rest, carry.low, carry.high);
			carry.halvings += SUFFIX_HALVINGS;
			__syncwarp();
			if (l.warp_must_leave())
				return false;
		}
		if (is_query)
			work.results[from * work.count + q] = suffix_longest(work, query, rest, carry.low);
	}
	return true;
}

extern "C" __global__ void __launch_bounds__(SUFFIX_THREADS, SUFFIX_SM_THREADS / SUFFIX_THREADS)
	suffix_match_loop(weir::loop_args args, const unsigned char *text, const unsigned *array, unsigned text_n,
			  const unsigned char *queries, unsigned *results, unsigned count, parts p)
{
	const suffix_work work = {text, array, text_n, queries, results, count};

	loop_over<SUFFIX_CHUNK, suffix_carry>(
		args, p,
		[=](weir::loop &l, unsigned i, suffix_carry &carry) {
			return suffix_piece(l, work, p, i % p.total, i, carry);
		},
		[] {});
}
