#include "policy/account.h"

#include <stddef.h>

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

static void add(uint64_t *total, uint64_t step)
{
	if (__builtin_add_overflow(*total, step, total))
		*total = UINT64_MAX;
}

void account_add(struct account *sum, const struct account *more)
{
	for (int i = 0; i < ACCOUNT_COUNTERS; i++)
		add(&sum->total[i], more->total[i]);
}

void account_read(struct account_reader *reader, const struct weir_status_page *page,
		  struct account *sum)
{
	for (int i = 0; i < ACCOUNT_COUNTERS; i++) {
		/* The counters are independent: no order between them is needed. */
		uint64_t now = atomic_load_explicit(counter(page, i), memory_order_relaxed);
		uint64_t step = now - reader->last[i];
		if (now > reader->last[i] && step <= ACCOUNT_STEP_MAX) {
			add(&reader->own.total[i], step);
			add(&sum->total[i], step);
		}
		reader->last[i] = now;
	}
	reader->outstanding = atomic_load_explicit(&page->outstanding, memory_order_relaxed);
	reader->remaining = atomic_load_explicit(&page->remaining, memory_order_relaxed);
	uint64_t comparing = atomic_load_explicit(&page->comparing, memory_order_relaxed);
	reader->tuning = comparing < UINT32_MAX ? (uint32_t)comparing : UINT32_MAX;
	uint32_t level = atomic_load_explicit(&page->level, memory_order_relaxed);
	reader->level = level < WEIR_LEVELS ? level : WEIR_LEVELS;
}
