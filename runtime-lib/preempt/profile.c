#include "preempt/profile.h"

#include "client/lesson.h"
#include "client/link.h"
#include "client/request.h"
#include "measure/kernel.h"

#include "weir/log.h"

#include <string.h>

static struct weir_profile_geometry geometry_of(const struct geometry *geometry, uint32_t sms,
						uint64_t latency)
{
	struct weir_profile_geometry out = {.shared = geometry->shared,
					    .sms = sms,
					    .latency = (uint32_t)larger(latency / NS_PER_US, 1)};

	memcpy(out.grid, geometry->grid, sizeof(out.grid));
	memcpy(out.block, geometry->block, sizeof(out.block));
	return out;
}

/* What the agent knows of the kernel in this geometry; NULL: nothing. */
static const struct weir_profile *find(const struct function *function,
				       const struct geometry *geometry, uint32_t sms,
				       uint64_t latency)
{
	const struct kernel_profiles *profiles = atomic_load(&function->profiles);
	struct weir_profile_geometry wanted = geometry_of(geometry, sms, latency);

	for (uint32_t i = 0; profiles && i < profiles->n; i++)
		if (memcmp(&profiles->entries[i].geometry, &wanted, sizeof(wanted)) == 0)
			return &profiles->entries[i];
	return NULL;
}

static uint64_t blocks_of(const struct weir_profile_geometry *geometry)
{
	return (uint64_t)geometry->grid[0] * geometry->grid[1] * geometry->grid[2];
}

/* The time with @wanted blocks if it grows as they do; UINT64_MAX: it need not be short. */
static uint64_t short_time(const struct weir_profile *known,
			   const struct weir_profile_geometry *wanted)
{
	uint64_t blocks = larger(blocks_of(&known->geometry), 1);
	uint64_t times = (blocks_of(wanted) + blocks - 1) / blocks;
	struct weir_profile_geometry same = known->geometry;

	memcpy(same.grid, wanted->grid, sizeof(same.grid));
	for (size_t i = 0; i < WEIR_PROFILE_CHOICES; i++)
		if (known->choices[i].form != WEIR_NATIVE)
			return UINT64_MAX;
	if (memcmp(&same, wanted, sizeof(same)) != 0 ||
	    known->native > wanted->latency * NS_PER_US / larger(times, 1))
		return UINT64_MAX;
	return known->native * larger(times, 1);
}

/* The kernel is short in other geometries, so that it must be in this one: some kernels have one
 * for each launch. */
static bool infer(const struct function *function, const struct geometry *geometry, uint32_t sms,
		  uint64_t latency, struct weir_profile *out)
{
	const struct kernel_profiles *profiles = atomic_load(&function->profiles);
	uint64_t least = UINT64_MAX;

	*out = (struct weir_profile){.geometry = geometry_of(geometry, sms, latency)};
	for (uint32_t i = 0; profiles && i < profiles->n; i++)
		least = smaller(least, short_time(&profiles->entries[i], &out->geometry));
	out->native = least;
	return least != UINT64_MAX;
}

/* For other geometries of this process. A full list loses its last one. */
static void remember(struct kernel_profiles *profiles, const struct weir_profile *profile)
{
	uint32_t at = 0;

	while (at < profiles->n && memcmp(&profiles->entries[at].geometry, &profile->geometry,
					  sizeof(profile->geometry)) != 0)
		at++;
	if (at == profiles->n && profiles->n < WEIR_PROFILE_KERNEL)
		profiles->n++;
	profiles->entries[smaller(at, WEIR_PROFILE_KERNEL - 1)] = *profile;
}

/* The kernel's times; NULL: another kernel has taken the entry. */
static struct kernel_time *time_of(uint64_t key)
{
	struct kernel_time *kernel = kernel_find(key);

	return atomic_load(&kernel->key) == key ? kernel : NULL;
}

bool profile_take(const struct profile_subject *subject, const struct autotune_situation *at,
		  const struct kernel_facts *facts)
{
	uint64_t latency = subject->tuner->settings->latency;
	const struct weir_profile *profile =
		find(subject->function, subject->geometry, facts->sms, latency);
	struct kernel_time *kernel = time_of(subject->key);
	struct weir_profile inferred;
	uint32_t in_use[WAITING_COUNT];

	if (!profile && atomic_load(&subject->tuner->assumed) &&
	    infer(subject->function, subject->geometry, facts->sms, latency, &inferred))
		profile = &inferred;

	if (!profile || !autotune_try_profile(subject->tuner, facts, profile, in_use))
		return false;
	if (kernel)
		kernel_is_profiled(kernel, subject->key, profile->native);
	if (kernel && profile->eviction_cost && !atomic_load(&kernel->eviction))
		kernel_learn_eviction(kernel, subject->key, profile->eviction_cost);
	autotune_settle_profile(subject->tuner, at, in_use);
	return true;
}

void profile_teach(const struct client *client, const struct profile_subject *subject,
		   struct profile_taught *taught)
{
	const struct function *function = subject->function;
	struct kernel_profiles *profiles = function ? atomic_load(&function->profiles) : NULL;
	const struct kernel_time *kernel = time_of(subject->key);
	uint64_t eviction = kernel ? atomic_load(&kernel->eviction) : 0;
	const struct autotuner *tuner = subject->tuner;
	struct weir_profile profile;

	if (!profiles || !tuner->measured ||
	    (taught->native == tuner->tuned_for && (taught->eviction || !eviction)))
		return;
	if (!autotune_make_profile(tuner, &profile))
		return;
	int sms = driver_attribute(client->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	profile.geometry = geometry_of(subject->geometry, (uint32_t)sms, tuner->settings->latency);
	profile.eviction_cost = eviction;
	if (!weir_profile_is_sane(&profile) || !lesson_put(client, profiles->kernel, &profile))
		return;
	remember(profiles, &profile);
	*taught = (struct profile_taught){tuner->tuned_for, eviction != 0};
	link_wake();
}
