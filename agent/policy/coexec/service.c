#include "policy/coexec/service.h"

#include <utlist.h>

#include "policy/policy.h"

#include "weir/base.h"

struct run_queue_entry *coexec_least_served(const struct run_queue *queue)
{
	struct run_queue_entry *entry, *found = queue->current;

	DL_FOREACH (queue->waiting, entry)
		if (!found || entry->coexec.served < found->coexec.served)
			found = entry;
	return found;
}

void coexec_note_service(struct run_queue *queue)
{
	const struct run_queue_entry *least = coexec_least_served(queue);

	if (least)
		queue->plan.service = larger(queue->plan.service, least->coexec.served);
}
