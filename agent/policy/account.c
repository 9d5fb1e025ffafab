#include "policy/account.h"

#include "weir/base.h"

static const size_t offsets[ACCOUNT_FORM_LAUNCHES] = {
#define F(name, field) offsetof(struct weir_status_page, field),
	ACCOUNT_FIELDS(F)
#undef F
};

static const _Atomic uint64_t *counter(const struct weir_status_page *page, int i)
{
	if (i >= ACCOUNT_FORM_EVICTIONS)
		return &page->form_evictions[i - ACCOUNT_FORM_EVICTIONS];
	if (i >= ACCOUNT_FORM_LAUNCHES)
		return &page->form_launches[i - ACCOUNT_FORM_LAUNCHES];
	return (const _Atomic uint64_t *)((const char *)page + offsets[i]);
}

void account_add(struct account *sum, const struct account *more)
{
	for (int i = 0; i < ACCOUNT_COUNTERS; i++)
		sum->total[i] = saturating_add(sum->total[i], more->total[i]);
}

void account_read(struct account_reader *reader, const struct weir_status_page *page,
		  struct account *sum)
{
	for (int i = 0; i < ACCOUNT_COUNTERS; i++) {
		/* The counters are independent: no order between them is needed. */
		uint64_t now = load_relaxed(counter(page, i));
		uint64_t step = now - reader->last[i];
		if (now > reader->last[i] && step <= ACCOUNT_STEP_MAX) {
			reader->own.total[i] = saturating_add(reader->own.total[i], step);
			sum->total[i] = saturating_add(sum->total[i], step);
		}
		reader->last[i] = now;
	}
	reader->outstanding = load_relaxed(&page->outstanding);
	reader->remaining = load_relaxed(&page->remaining);
	reader->tuning = (uint32_t)smaller(load_relaxed(&page->comparing), UINT32_MAX);
	reader->loops = load_relaxed(&page->loops);
	reader->loops_on_gpu = load_relaxed(&page->loops_on_gpu);
	for (size_t i = 0; i < countof(reader->loops_waiting); i++)
		reader->loops_waiting[i] = load_relaxed(&page->loops_waiting[i]);
	reader->level = (uint32_t)smaller(load_relaxed(&page->level), WEIR_LEVELS);
}
