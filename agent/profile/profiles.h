/* What is known of kernels from earlier processes: in which form each is launched, by geometry
 * (struct weir_profile). Pure: no I/O, no clock.
 *
 * A profile belongs to a scope: a namespace, or outside pods a user. What a pod teaches is read in
 * its own scope only. Profiles that an administrator imports for everybody are in a scope of their
 * own, PROFILES_EVERYBODY. The scope's own come first.
 *
 * All is bounded. A scope that is full loses the profile that was not used for longest. If the
 * store is full, the scope with the most profiles does, so that no scope crowds the others out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/async-hash.h"

#include "weir/protocol.h"

#define PROFILES_MAX           10000
#define PROFILES_SCOPE_MAX     2500
#define PROFILES_EVERYBODY_MAX 5000
#define PROFILES_EVERYBODY     "*"
/* A scope may teach so many in so many ns. */
#define PROFILES_LEARN_MAX 512
#define PROFILES_LEARN_NS  60000000000ull

/* Strings are padded with zeros: the key is compared as bytes. */
struct profile_key {
	char scope[72]; /* a namespace's name, uid:NUMBER, or PROFILES_EVERYBODY */
	char gpu[96];   /* the model's name; empty: not known */
	struct digest kernel;
};

struct profile {
	struct weir_profile values;
	uint64_t used;   /* s since the epoch: taught or looked up */
	uint64_t number; /* in the order of their coming */
	struct profile_kernel *kernel;
	struct profile *prev, *next;         /* of the kernel, latest first */
	struct profile *use_prev, *use_next; /* of the scope, the one used longest ago first */
	struct profile *all_prev, *all_next; /* by number */
};

struct profile_kernel {
	struct profile_key key;
	struct profile_scope *scope;
	struct profile *profiles;
	unsigned n;
	UT_hash_handle hh;
};

struct profile_scope {
	char name[sizeof(((struct profile_key *)0)->scope)];
	struct profile *by_use;
	unsigned n, kernels;
	unsigned learned; /* within PROFILES_LEARN_NS from `since` on */
	uint64_t since;
	UT_hash_handle hh;
};

struct profiles {
	struct profile_kernel *kernels; /* hash by key */
	struct profile_scope *scopes;   /* hash by name */
	struct profile *all;
	unsigned n;
	uint64_t last_number;
	uint64_t changes; /* whatever is not only a look-up */
	struct {
		uint64_t hits, misses; /* kernels looked up */
		uint64_t learned, refused, evicted;
	} counters;
};

void profiles_deinit(struct profiles *profiles);

/* False: a string is too long. */
bool profile_key_make(struct profile_key *out, const char *scope, const char *gpu,
		      const struct digest *kernel);

/* Adds a sane profile, or replaces that of the same geometry. 0 or -ENOMEM. */
int profiles_put(struct profiles *profiles, const struct profile_key *key,
		 const struct weir_profile *values, uint64_t used);

/* The same for what a client says: within the limits of its scope. False: refused, and counted.
 * @now: monotonic ns. */
bool profiles_learn(struct profiles *profiles, const struct profile_key *key,
		    const struct weir_profile *values, uint64_t used, uint64_t now);

/* The profiles of a kernel in its scope and those for everybody. Returns how many were written to
 * @out, which has room for WEIR_PROFILE_KERNEL. */
unsigned profiles_find(struct profiles *profiles, const struct profile_key *key, uint64_t used,
		       struct weir_profile *out);
/* The same, not counted as a look-up. */
unsigned profiles_known(struct profiles *profiles, const struct profile_key *key, uint64_t used,
			struct weir_profile *out);

/* Forgets those of a scope (NULL: of all), and of a GPU's model (NULL: of all). Returns how many.
 */
unsigned profiles_forget(struct profiles *profiles, const char *scope, const char *gpu);
