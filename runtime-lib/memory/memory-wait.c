#include "memory/memory-wait.h"

#include "memory/memory-account.h"

#include "weir/log.h"

#include <poll.h>

#define PAUSE_MIN_MS 5
#define PAUSE_MAX_MS 100

/* False: the allocation fails at once. */
static bool begin(struct memory_wait *wait, struct ledger *ledger, uint64_t bytes)
{
	unsigned ms = ledger_wait_ms(ledger);
	CUuuid gpu;

	if (!ms || real(cuDeviceGetUuid_v2)(&gpu, ledger_device(ledger)) != CUDA_SUCCESS)
		return false;
	wait->socket = memory_tell_wait((const uint8_t *)gpu.bytes, bytes);
	if (wait->socket < 0)
		return false;
	wait->until = monotonic_now() + ms * NS_PER_MS;
	wait->pause_ms = PAUSE_MIN_MS;
	log_limited(LOG_INFO, 10, "the GPU is full: %llu bytes wait up to %u ms for others",
		    (unsigned long long)bytes, ms);
	return true;
}

/* False: the time is over, or the agent has gone. */
static bool pause_for_others(struct memory_wait *wait)
{
	struct pollfd agent = {.fd = wait->socket, .events = POLLIN};

	if (monotonic_now() >= wait->until)
		return false;
	if (poll(&agent, 1, wait->pause_ms) > 0)
		return false;
	wait->pause_ms = (int)smaller((uint64_t)wait->pause_ms * 2, PAUSE_MAX_MS);
	return true;
}

bool memory_wait(struct memory_wait *wait, struct ledger *ledger, uint64_t bytes, CUresult result)
{
	if (!wait->until && (result != CUDA_ERROR_OUT_OF_MEMORY || !ledger))
		return false;
	if (!wait->until && !begin(wait, ledger, bytes))
		return false;
	if (result == CUDA_ERROR_OUT_OF_MEMORY && pause_for_others(wait))
		return true;
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		log_limited(LOG_WARNING, 10,
			    "the GPU is full: %llu bytes waited, and others freed too little",
			    (unsigned long long)bytes);
	close(wait->socket);
	return false;
}
