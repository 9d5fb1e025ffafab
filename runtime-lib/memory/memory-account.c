#include "memory/memory-account.h"

#include <sched.h>
#include <time.h>

/* The lock is held for as long as 252 words are added up. Who waits gives way first, then sleeps:
 * tries are counted, not time, which goes on while a container is frozen. */
#define YIELDS 200
#define SLEEPS 3000 /* of 1 ms; the agent frees the lock of a dead process much sooner */

static bool lock(struct weir_account_page *account, uint32_t slot)
{
	static const struct timespec moment = {.tv_nsec = 1000000};

	for (int i = 0; i < YIELDS + SLEEPS; i++) {
		uint32_t nobody = 0;
		if (atomic_compare_exchange_strong(&account->lock, &nobody, slot + 1))
			return true;
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&moment, NULL);
	}
	return false;
}

/* The agent may have taken it from us, and somebody else has it. */
static void unlock(struct weir_account_page *account, uint32_t slot)
{
	uint32_t own = slot + 1;

	atomic_compare_exchange_strong(&account->lock, &own, 0);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t account_sum(const struct weir_account_page *account)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++)
		sum = add(sum, atomic_load(&account->slots[i].reserved));
	return sum;
}

enum account_answer account_reserve(struct weir_account_page *account,
				    const struct weir_limit_page *limit, uint32_t slot,
				    uint64_t more)
{
	uint64_t most = atomic_load(&limit->limit);
	uint64_t wanted = add(atomic_load(&account->slots[slot].reserved), more);

	if (!most) {
		account_set(account, slot, wanted);
		return ACCOUNT_RESERVED;
	}
	if (!lock(account, slot))
		return ACCOUNT_BUSY;
	bool fits = add(account_sum(account), more) <= most;
	if (fits)
		account_set(account, slot, wanted);
	unlock(account, slot);
	return fits ? ACCOUNT_RESERVED : ACCOUNT_FULL;
}

void account_set(struct weir_account_page *account, uint32_t slot, uint64_t bytes)
{
	atomic_store(&account->slots[slot].reserved, bytes);
}
