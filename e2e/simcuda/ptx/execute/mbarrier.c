/* mbarrier: a barrier that is a word in shared memory. The word is opaque to programs; here it
 * counts in its upper bits the phases that are over (modulo 8). Below that are the bytes that this
 * phase still waits for, which may be less than 0; the arrivals that it still waits for; and the
 * arrivals that each phase expects.
 *
 *	63    61 60    40 39     20 19       0
 *	[ phase | bytes  | pending | expected ]
 *
 * A wait that finds its phase not over says so, and the program asks again. It completes the oldest
 * bulk copy that is under way.
 */
#include "simcuda/ptx/execute/async/bulk.h"
#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/memory.h"
#include "simcuda/ptx/execute/sync.h"

#define COUNT_MASK 0xfffffu
#define BYTES_BITS 21
#define BYTES_MAX  ((1 << (BYTES_BITS - 1)) - 1)

struct word {
	uint32_t expected, pending, phase;
	int32_t bytes;
};

static struct word unpack(uint64_t bits)
{
	return (struct word){(uint32_t)bits & COUNT_MASK, (uint32_t)(bits >> 20) & COUNT_MASK,
			     (uint32_t)(bits >> 61),
			     (int32_t)((int64_t)(bits << 3) >> (64 - BYTES_BITS))};
}

static uint64_t pack(struct word word)
{
	uint64_t bytes = (uint64_t)word.bytes & ((1u << BYTES_BITS) - 1);

	return (uint64_t)(word.phase & 7) << 61 | bytes << 40 | (uint64_t)word.pending << 20 |
	       word.expected;
}

/* The phase is over when all have arrived and all bytes have come. */
static void settle(struct word *word)
{
	if (word->pending || word->bytes)
		return;
	word->pending = word->expected;
	word->phase++;
}

/* False: more arrivals than it waits for. */
static bool arrive(struct word *word, uint32_t count, bool drop)
{
	if (count > word->pending || (drop && count > word->expected))
		return false;
	word->expected -= drop ? count : 0;
	word->pending -= count;
	settle(word);
	return true;
}

static bool expect(struct word *word, int64_t bytes)
{
	if (bytes > BYTES_MAX || word->bytes + bytes > BYTES_MAX ||
	    word->bytes + bytes < -BYTES_MAX)
		return false;
	word->bytes += (int32_t)bytes;
	return true;
}

void ptx_mbarrier_complete(uint64_t *barrier, uint32_t bytes)
{
	struct word word = unpack(*barrier);

	expect(&word, -(int64_t)bytes);
	settle(&word);
	*barrier = pack(word);
}

/* Tells whether an mbarrier is at @host, and makes it so from then on. */
static bool exchange_valid(const struct ptx_block *block, const uint8_t *host, bool valid)
{
	uint64_t word = (uint64_t)(host - block->shared) / sizeof(uint64_t);
	uint8_t bit = (uint8_t)(1u << word % 8), *at = &block->mbarriers[word / 8];
	bool was = *at & bit;

	*at = (uint8_t)(valid ? *at | bit : *at & ~bit);
	return was;
}

/* Programs must invalidate an mbarrier before they initialise another one in its place. NULL:
 * right.
 */
static const char *misuse(const struct ptx_block *block, const struct ptx_insn *i,
			  const uint8_t *host)
{
	uint8_t operation = i->access.variant;

	if (host < block->shared || host >= block->shared + block->shared_bytes)
		return "outside of shared memory";
	if (operation <= PTX_MBARRIER_INVAL &&
	    ptx_bulk_awaited(block, (const uint64_t *)(const void *)host))
		return "that bulk copies will arrive at";
	if (exchange_valid(block, host, operation != PTX_MBARRIER_INVAL) ==
	    (operation != PTX_MBARRIER_INIT))
		return NULL;
	return operation == PTX_MBARRIER_INIT ? "that was not invalidated"
					      : "that was not initialised";
}

/* Executes one lane. The result is the previous state, or whether the wait is over. */
static bool operate(const struct ptx_insn *i, uint64_t *at, uint64_t operand, uint64_t *result)
{
	struct word word = unpack(*at);

	*result = *at;
	switch ((enum ptx_mbarrier_operation)i->access.variant) {
	case PTX_MBARRIER_INIT:
		word = (struct word){(uint32_t)operand, (uint32_t)operand, 0, 0};
		if (operand == 0 || operand > COUNT_MASK)
			return false;
		break;
	case PTX_MBARRIER_INVAL:
		word = (struct word){0};
		break;
	case PTX_MBARRIER_ARRIVE:
	case PTX_MBARRIER_DROP:
		if (!arrive(&word, (uint32_t)operand, i->access.variant == PTX_MBARRIER_DROP))
			return false;
		break;
	case PTX_MBARRIER_EXPECT:
	case PTX_MBARRIER_COMPLETE:
		if (!expect(&word, i->access.variant == PTX_MBARRIER_EXPECT ? (int64_t)operand
									    : -(int64_t)operand))
			return false;
		settle(&word);
		break;
	case PTX_MBARRIER_ARRIVE_EXPECT:
		if (!expect(&word, (int64_t)operand) || !arrive(&word, 1, false))
			return false;
		break;
	case PTX_MBARRIER_WAIT:
		*result = word.phase != unpack(operand).phase;
		break;
	case PTX_MBARRIER_WAIT_PARITY:
		*result = (word.phase & 1) != (operand & 1);
		break;
	}
	*at = pack(word);
	return true;
}

/* op: the word, result, operand. */
enum ptx_flow ptx_exec_mbarrier(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	bool waits = i->access.variant == PTX_MBARRIER_WAIT ||
		     i->access.variant == PTX_MBARRIER_WAIT_PARITY;
	bool in_vain = false;
	uint8_t *host[PTX_LANES];
	uint64_t result;

	if (!ptx_resolve(w, i, mask, sizeof(uint64_t), host))
		return PTX_FAULT;
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		const char *wrong = misuse(w->block, i, host[lane]);
		if (wrong)
			return ptx_fault(w, i, "an mbarrier %s", wrong);
		const void *row = ptx_row(w, i->op[2]);
		uint64_t operand = i->access.row_bytes == 8 ? ((const uint64_t *)row)[lane]
							    : ((const uint32_t *)row)[lane];
		if (!operate(i, (uint64_t *)(void *)host[lane], operand, &result))
			return ptx_fault(w, i, "mbarrier: a count of %llu that is out of range",
					 (unsigned long long)operand);
		in_vain |= waits && !result;
		if (i->op[1] == PTX_NO_ROW)
			continue;
		uint32_t *word = ptx_row(w, i->op[1]);
		if (waits)
			*word = (*word & ~(1u << lane)) | (uint32_t)result << lane;
		else
			((uint64_t *)(void *)word)[lane] = result;
	}
	w->yields |= in_vain;
	return in_vain && !ptx_bulk_progress(w) ? PTX_FAULT : PTX_NEXT;
}
