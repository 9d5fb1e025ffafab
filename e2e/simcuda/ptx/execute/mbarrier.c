/* mbarrier: a barrier that is a word in shared memory. The word is opaque to programs; here it
 * counts in its upper bits the phases that are over, and below that the arrivals that this phase
 * still waits for and those that each phase expects.
 *
 *	63       40 39     20 19       0
 *	[  phase   | pending | expected ]
 *
 * Copies are done before anyone can look (memory.c), so nothing is ever in flight: a wait that
 * finds its phase not over says so, and the program asks again.
 */
#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/memory.h"
#include "simcuda/ptx/execute/sync.h"

#define COUNT_MASK 0xfffffu

struct word {
	uint32_t expected, pending, phase;
};

static struct word unpack(uint64_t bits)
{
	return (struct word){(uint32_t)bits & COUNT_MASK, (uint32_t)(bits >> 20) & COUNT_MASK,
			     (uint32_t)(bits >> 40)};
}

static uint64_t pack(struct word word)
{
	return (uint64_t)(word.phase & 0xffffff) << 40 | (uint64_t)word.pending << 20 |
	       word.expected;
}

/* False: more arrivals than it waits for. */
static bool arrive(struct word *word, uint32_t count, bool drop)
{
	if (count > word->pending || (drop && count > word->expected))
		return false;
	word->expected -= drop ? count : 0;
	word->pending -= count;
	if (word->pending == 0) {
		word->pending = word->expected;
		word->phase++;
	}
	return true;
}

/* Executes one lane. The result is the previous state, or whether the wait is over. */
static bool operate(const struct ptx_insn *i, uint64_t *at, uint64_t operand, uint64_t *result)
{
	struct word word = unpack(*at);

	*result = *at;
	switch ((enum ptx_mbarrier_operation)i->access.variant) {
	case PTX_MBARRIER_INIT:
		word = (struct word){(uint32_t)operand, (uint32_t)operand, 0};
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
	uint8_t *host[PTX_LANES];
	uint64_t result;

	if (!ptx_resolve(w, i, mask, sizeof(uint64_t), host))
		return PTX_FAULT;
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		const void *row = ptx_row(w, i->op[2]);
		uint64_t operand = i->access.row_bytes == 8 ? ((const uint64_t *)row)[lane]
							    : ((const uint32_t *)row)[lane];
		if (!operate(i, (uint64_t *)(void *)host[lane], operand, &result))
			return ptx_fault(w, i, "mbarrier: a count of %llu that is out of range",
					 (unsigned long long)operand);
		if (i->op[1] == PTX_NO_ROW)
			continue;
		uint32_t *word = ptx_row(w, i->op[1]);
		if (waits)
			*word = (*word & ~(1u << lane)) | (uint32_t)result << lane;
		else
			((uint64_t *)(void *)word)[lane] = result;
	}
	return PTX_NEXT;
}
