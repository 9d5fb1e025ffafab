#include "policy/coexec/unfinished.h"

#include <string.h>

#include "policy/coexec/order.h"

/* NULL: nothing was tried. @order: where each of @kernels stands in it. */
static const struct coexec_tried *find(const struct coexec_unfinished *unfinished,
				       const uint64_t *kernels, unsigned n,
				       unsigned order[COEXEC_MOST])
{
	uint64_t sorted[COEXEC_MOST];

	coexec_order(kernels, n, sorted, order);
	for (size_t i = 0; i < COEXEC_UNFINISHED; i++)
		if (memcmp(unfinished->of[i].kernels, sorted, sizeof(sorted)) == 0)
			return &unfinished->of[i];
	return NULL;
}

static struct coexec_tried *find_or_oldest(struct coexec_unfinished *unfinished,
					   const uint64_t *kernels, unsigned n,
					   unsigned order[COEXEC_MOST])
{
	const struct coexec_tried *found = find(unfinished, kernels, n, order);

	if (found)
		return &unfinished->of[found - unfinished->of];
	struct coexec_tried *oldest = &unfinished->of[0];
	for (size_t i = 1; i < COEXEC_UNFINISHED; i++)
		if (unfinished->of[i].used < oldest->used)
			oldest = &unfinished->of[i];
	return oldest;
}

void coexec_unfinished_put(struct coexec_unfinished *unfinished, const uint64_t *kernels,
			   unsigned n, const struct coexec_space *space,
			   const struct coexec_search *search)
{
	unsigned order[COEXEC_MOST];
	struct coexec_tried *tried = find_or_oldest(unfinished, kernels, n, order);

	*tried = (struct coexec_tried){.used = ++unfinished->uses};
	for (unsigned k = 0; k < n; k++)
		tried->kernels[order[k]] = kernels[k];
	for (unsigned i = 0; i < search->n; i++) {
		if (!search->measured[i])
			continue;
		for (unsigned k = 0; k < n; k++) {
			tried->of[tried->n].workers[order[k]] = space->of[i].workers[k];
			tried->of[tried->n].rates[order[k]] = (float)search->rates[i][k];
		}
		tried->n++;
	}
}

/* Whether a try had the workers of configuration @i. */
static bool is_of(const struct coexec_tried *tried, unsigned at, const unsigned *order, unsigned n,
		  const struct coexec_configuration *configuration)
{
	for (unsigned k = 0; k < n; k++)
		if (tried->of[at].workers[order[k]] != configuration->workers[k])
			return false;
	return true;
}

void coexec_unfinished_resume(struct coexec_unfinished *unfinished, const uint64_t *kernels,
			      unsigned n, const struct coexec_space *space,
			      struct coexec_search *search)
{
	unsigned order[COEXEC_MOST];
	const struct coexec_tried *tried = find(unfinished, kernels, n, order);

	for (unsigned at = 0; tried && at < tried->n; at++) {
		double rates[COEXEC_MOST];
		for (unsigned k = 0; k < n; k++)
			rates[k] = (double)tried->of[at].rates[order[k]];
		for (unsigned i = 0; i < search->n; i++)
			if (is_of(tried, at, order, n, &space->of[i]))
				coexec_search_recall(search, i, rates);
	}
}

void coexec_unfinished_forget(struct coexec_unfinished *unfinished, const uint64_t *kernels,
			      unsigned n)
{
	unsigned order[COEXEC_MOST];
	const struct coexec_tried *found = find(unfinished, kernels, n, order);

	if (found)
		unfinished->of[found - unfinished->of] = (struct coexec_tried){.used = 0};
}

double coexec_unfinished_highest(const struct coexec_unfinished *unfinished,
				 const uint64_t *kernels, unsigned n)
{
	unsigned order[COEXEC_MOST];
	const struct coexec_tried *tried = find(unfinished, kernels, n, order);
	double highest = 0;

	for (unsigned at = 0; tried && at < tried->n; at++) {
		double sum = 0;
		for (unsigned k = 0; k < n; k++)
			sum += (double)tried->of[at].rates[k];
		highest = sum > highest ? sum : highest;
	}
	return highest;
}
