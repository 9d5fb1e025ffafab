#include "shm/demand-page.h"

void demand_page_set(struct weir_demand_page *page, uint64_t bits)
{
	atomic_fetch_or(&page->whole, bits);
	atomic_fetch_or(&page->word, bits);
}

void demand_page_whole(struct weir_demand_page *page, uint64_t bit)
{
	if (atomic_load(&page->word) & bit)
		atomic_fetch_or(&page->whole, bit);
	else
		atomic_fetch_and(&page->whole, ~bit);
}

void demand_page_keep(struct weir_demand_page *page, uint64_t bits)
{
	atomic_fetch_and(&page->word, bits);
	atomic_fetch_and(&page->whole, bits);
	atomic_fetch_and(&page->places, bits);
}

void demand_page_clear(struct weir_demand_page *page)
{
	demand_page_keep(page, 0);
	atomic_store(&page->sms, 0);
}

void demand_page_repair(struct weir_demand_page *page, struct demand_page_look *last, uint32_t said)
{
	struct demand_page_look now = {.sms = atomic_load(&page->sms), .said = said};
	bool again = now.sms == last->sms && now.said == last->said;

	*last = now;
	if (again && now.sms != said)
		atomic_compare_exchange_strong(&page->sms, &now.sms, said);
}
