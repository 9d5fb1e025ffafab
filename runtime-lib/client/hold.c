#include "client/hold.h"

#include "weir/log.h"

uint64_t hold_expire(const struct level_binding *binding, uint64_t now)
{
	struct weir_control_page *control = control_page(binding);
	uint64_t later = now + HOLD_LOOK;

	if (!atomic_load(&control->hold))
		return later;
	/* The agent writes the time before the word, so this one is the hold's own, or newer. */
	uint64_t until = atomic_load(&control->hold_until);
	if (!until)
		return later;
	if (now < until)
		return until < later ? until : later;
	atomic_store(&control->hold, 0);
	log_limited(LOG_WARNING, 60,
		    "the agent has forgotten that it holds this process: it goes on");
	return later;
}
