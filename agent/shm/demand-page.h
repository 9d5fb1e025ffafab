/* What the agent does to a demand page (weir/protocol.h). Clients set and clear their bits at any
 * time. */
#pragma once

#include "weir/protocol.h"

/* Work outstanding that needs the whole GPU, as far as the agent knows. */
void demand_page_set(struct weir_demand_page *page, uint64_t bits);
/* All demand of this client is for the whole GPU: its bit is in `whole` if it is in `word`. */
void demand_page_whole(struct weir_demand_page *page, uint64_t bit);
/* Clears all other bits. */
void demand_page_keep(struct weir_demand_page *page, uint64_t bits);
/* Opens the gates that wait for it. */
void demand_page_clear(struct weir_demand_page *page);

/* Bits of clients with demand of either kind. */
static inline uint64_t demand_page_bits(struct weir_demand_page *page)
{
	return atomic_load(&page->word) | atomic_load(&page->whole);
}

/* A sum of SMs that is not what the clients' status pages say. */
struct demand_page_look {
	uint32_t sms, said;
};

/* Corrects `sms` to @said, which the living clients say that they need. A client changes its status
 * page just before or after the sum, so only what two looks in a row find is wrong. */
void demand_page_repair(struct weir_demand_page *page, struct demand_page_look *last,
			uint32_t said);
