#include "compile/job-order.h"

#include <utlist.h>

static bool is_before(const struct compile_client *left, const struct compile_client *right)
{
	uint64_t left_container = left->container->served;
	uint64_t right_container = right->container->served;

	return left_container != right_container ? left_container < right_container
						 : left->served < right->served;
}

/* The waiting client that is served first. */
static const struct compile_client *first_of(const struct compile_job *job)
{
	const struct compile_client *first = job->requests->client;

	for (const struct compile_request *r = job->requests; r; r = r->job_next)
		if (is_before(r->client, first))
			first = r->client;
	return first;
}

struct compile_job *job_order_next(const struct compile *compile)
{
	struct compile_job *best = compile->waiting, *job = NULL;

	DL_FOREACH (compile->waiting, job)
		if (is_before(first_of(job), first_of(best)))
			best = job;
	return best;
}

static bool waits_for(const struct compile_container *container, const struct compile_job *job)
{
	for (const struct compile_request *r = job->requests; r; r = r->job_next)
		if (r->client->container == container)
			return true;
	return false;
}

/* NULL: nobody waits for it, or several containers do. */
static const struct compile_container *owner_of(const struct compile_job *job)
{
	const struct compile_container *owner =
		job->requests ? job->requests->client->container : NULL;

	for (const struct compile_request *r = job->requests; r; r = r->job_next)
		if (r->client->container != owner)
			return NULL;
	return owner;
}

static unsigned count_running(const struct compile *compile,
			      const struct compile_container *container)
{
	unsigned n = 0;

	for (const struct compile_job *job = compile->jobs; job; job = job->hh.next)
		n += job->running && waits_for(container, job);
	return n;
}

static bool may_yield(const struct compile_job *job)
{
	const struct compile_container *owner = owner_of(job);

	if (!job->running || !job->helper.pid)
		return false;
	return !job->requests || (owner && count_running(job->compile, owner) > 1);
}

void job_order_make_room(const struct compile_job *waiting)
{
	const struct compile *compile = waiting->compile;
	struct compile_job *youngest = NULL;

	if (count_running(compile, first_of(waiting)->container))
		return;
	for (struct compile_job *job = compile->jobs; job; job = job->hh.next) {
		if (job->yields)
			return;
		if (may_yield(job) && (!youngest || job->began > youngest->began))
			youngest = job;
	}
	if (!youngest)
		return;
	youngest->yields = true;
	helper_kill(&youngest->helper);
}
