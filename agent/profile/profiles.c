#include "profile/profiles.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "weir/base.h"
#include "weir/error.h"

static bool is_everybody(const char *scope)
{
	return strcmp(scope, PROFILES_EVERYBODY) == 0;
}

static bool fill(char *out, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		return false;
	memset(out, 0, size);
	memcpy(out, text, length + 1);
	return true;
}

bool profile_key_make(struct profile_key *out, const char *scope, const char *gpu,
		      const struct digest *kernel)
{
	out->kernel = *kernel;
	return fill(out->scope, sizeof(out->scope), scope) && fill(out->gpu, sizeof(out->gpu), gpu);
}

/* Scopes and kernels are there while they have profiles. */

static struct profile_scope *find_scope(const struct profiles *profiles, const char *name)
{
	struct profile_scope *scope;

	HASH_FIND_STR(profiles->scopes, name, scope);
	return scope;
}

static struct profile_kernel *find_kernel(const struct profiles *profiles,
					  const struct profile_key *key)
{
	struct profile_kernel *kernel;

	HASH_FIND(hh, profiles->kernels, key, sizeof(*key), kernel);
	return kernel;
}

static struct profile_scope *get_scope(struct profiles *profiles, const char *name)
{
	struct profile_scope *scope = find_scope(profiles, name);

	if (scope)
		return scope;
	scope = calloc(1, sizeof(*scope));
	if (!scope)
		return NULL;
	fill(scope->name, sizeof(scope->name), name);
	HASH_ADD_STR(profiles->scopes, name, scope);
	return scope;
}

static void drop_scope_if_unused(struct profiles *profiles, struct profile_scope *scope)
{
	if (scope->kernels || !profiles->scopes)
		return;
	HASH_DEL(profiles->scopes, scope);
	free(scope);
}

static struct profile_kernel *get_kernel(struct profiles *profiles, const struct profile_key *key)
{
	struct profile_kernel *kernel = find_kernel(profiles, key);

	if (kernel)
		return kernel;
	kernel = calloc(1, sizeof(*kernel));
	struct profile_scope *scope = kernel ? get_scope(profiles, key->scope) : NULL;
	if (!scope) {
		free(kernel);
		return NULL;
	}
	kernel->key = *key;
	kernel->scope = scope;
	scope->kernels++;
	HASH_ADD(hh, profiles->kernels, key, sizeof(kernel->key), kernel);
	return kernel;
}

static void drop_kernel_if_empty(struct profiles *profiles, struct profile_kernel *kernel)
{
	struct profile_scope *scope = kernel->scope;

	if (kernel->n || !profiles->kernels)
		return;
	HASH_DEL(profiles->kernels, kernel);
	free(kernel);
	scope->kernels--;
	drop_scope_if_unused(profiles, scope);
}

/* The caller drops what is empty then. */
static void unlink_profile(struct profiles *profiles, struct profile *profile)
{
	struct profile_kernel *kernel = profile->kernel;

	DL_DELETE(kernel->profiles, profile);
	DL_DELETE2(kernel->scope->by_use, profile, use_prev, use_next);
	DL_DELETE2(profiles->all, profile, all_prev, all_next);
	kernel->n--;
	kernel->scope->n--;
	profiles->n--;
	profiles->changes++;
	free(profile);
}

static void drop(struct profiles *profiles, struct profile *profile)
{
	struct profile_kernel *kernel = profile->kernel;

	unlink_profile(profiles, profile);
	drop_kernel_if_empty(profiles, kernel);
}

static void touch(struct profile *profile, uint64_t used)
{
	struct profile_scope *scope = profile->kernel->scope;

	profile->used = used;
	DL_DELETE2(scope->by_use, profile, use_prev, use_next);
	DL_APPEND2(scope->by_use, profile, use_prev, use_next);
}

/* The scope that loses one when the store is full. Those for everybody stay, unless there are no
 * others: an administrator has put them there. */
static struct profile_scope *largest(const struct profiles *profiles)
{
	struct profile_scope *most = NULL;

	for (struct profile_scope *s = profiles->scopes; s; s = s->hh.next)
		if (!most || is_everybody(most->name) || (s->n > most->n && !is_everybody(s->name)))
			most = s;
	return most;
}

/* Leaves @kernel, although it may have become empty. */
static void make_room(struct profiles *profiles, const struct profile_kernel *kernel)
{
	const struct profile_scope *scope = kernel->scope;
	unsigned most = is_everybody(scope->name) ? PROFILES_EVERYBODY_MAX : PROFILES_SCOPE_MAX;
	struct profile *old = NULL;

	if (kernel->n == WEIR_PROFILE_KERNEL)
		old = kernel->profiles->prev; /* the last one */
	else if (scope->n == most)
		old = scope->by_use;
	else if (profiles->n == PROFILES_MAX)
		old = largest(profiles)->by_use;
	if (!old)
		return;
	profiles->counters.evicted++;
	if (old->kernel == kernel)
		unlink_profile(profiles, old);
	else
		drop(profiles, old);
}

static struct profile *find_same(const struct profile_kernel *kernel,
				 const struct weir_profile_geometry *geometry)
{
	struct profile *profile;

	DL_FOREACH (kernel->profiles, profile)
		if (memcmp(&profile->values.geometry, geometry, sizeof(*geometry)) == 0)
			return profile;
	return NULL;
}

static struct profile *add(struct profiles *profiles, struct profile_kernel *kernel)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	make_room(profiles, kernel);
	profile->kernel = kernel;
	profile->number = ++profiles->last_number;
	/* What was freed is in no list any more. NOLINTBEGIN(clang-analyzer-unix.Malloc) */
	DL_PREPEND(kernel->profiles, profile);
	DL_APPEND2(kernel->scope->by_use, profile, use_prev, use_next);
	DL_APPEND2(profiles->all, profile, all_prev, all_next);
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
	kernel->n++;
	kernel->scope->n++;
	profiles->n++;
	return profile;
}

int profiles_put(struct profiles *profiles, const struct profile_key *key,
		 const struct weir_profile *values, uint64_t used)
{
	struct profile_kernel *kernel = get_kernel(profiles, key);
	struct profile *profile = kernel ? find_same(kernel, &values->geometry) : NULL;

	if (kernel && !profile)
		profile = add(profiles, kernel);
	if (!profile) {
		if (kernel)
			drop_kernel_if_empty(profiles, kernel);
		return error_origin(-ENOMEM);
	}
	profile->values = *values;
	touch(profile, used);
	DL_DELETE(kernel->profiles, profile);
	DL_PREPEND(kernel->profiles, profile);
	profiles->changes++;
	return 0;
}

/* A scope without profiles has taught nothing. */
static bool may_learn(const struct profiles *profiles, const char *name, uint64_t now)
{
	struct profile_scope *scope = find_scope(profiles, name);

	if (!scope)
		return true;
	if (now - scope->since >= PROFILES_LEARN_NS) {
		scope->since = now;
		scope->learned = 0;
	}
	return scope->learned < PROFILES_LEARN_MAX;
}

bool profiles_learn(struct profiles *profiles, const struct profile_key *key,
		    const struct weir_profile *values, uint64_t used, uint64_t now)
{
	if (!weir_profile_is_sane(values) || !may_learn(profiles, key->scope, now) ||
	    profiles_put(profiles, key, values, used) < 0) {
		profiles->counters.refused++;
		return false;
	}
	find_scope(profiles, key->scope)->learned++;
	profiles->counters.learned++;
	return true;
}

static bool contains(const struct weir_profile *list, unsigned n,
		     const struct weir_profile_geometry *geometry)
{
	for (unsigned i = 0; i < n; i++)
		if (memcmp(&list[i].geometry, geometry, sizeof(*geometry)) == 0)
			return true;
	return false;
}

unsigned profiles_known(struct profiles *profiles, const struct profile_key *key, uint64_t used,
			struct weir_profile *out)
{
	struct profile_key everybody = *key;
	struct profile_kernel *kernels[2];
	struct profile *profile;
	unsigned n = 0;

	fill(everybody.scope, sizeof(everybody.scope), PROFILES_EVERYBODY);
	kernels[0] = find_kernel(profiles, key);
	kernels[1] = find_kernel(profiles, &everybody);
	for (size_t i = 0; i < countof(kernels); i++) {
		DL_FOREACH (kernels[i] ? kernels[i]->profiles : NULL, profile) {
			if (n == WEIR_PROFILE_KERNEL || contains(out, n, &profile->values.geometry))
				continue;
			touch(profile, used);
			out[n++] = profile->values;
		}
	}
	return n;
}

unsigned profiles_find(struct profiles *profiles, const struct profile_key *key, uint64_t used,
		       struct weir_profile *out)
{
	unsigned n = profiles_known(profiles, key, used, out);

	if (n)
		profiles->counters.hits++;
	else
		profiles->counters.misses++;
	return n;
}

unsigned profiles_forget(struct profiles *profiles, const char *scope, const char *gpu)
{
	struct profile *profile, *next;
	unsigned n = 0;

	for (profile = profiles->all; profile; profile = next) {
		const struct profile_key *key = &profile->kernel->key;
		next = profile->all_next;
		if ((scope && strcmp(key->scope, scope) != 0) ||
		    (gpu && strcmp(key->gpu, gpu) != 0))
			continue;
		drop(profiles, profile);
		n++;
	}
	return n;
}

void profiles_deinit(struct profiles *profiles)
{
	profiles_forget(profiles, NULL, NULL);
	*profiles = (struct profiles){0};
}
