/* 10 000 profiles of 200 namespaces: memory, time of a look-up, and of the file. Prints one line of
 * JSON. */
#include "profile/profile-file.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"

#define SCOPES     200
#define KERNELS    10 /* of a namespace */
#define GEOMETRIES (PROFILES_MAX / SCOPES / KERNELS)
#define ROUNDS     200000

static struct profile_key key_of(unsigned scope, unsigned kernel)
{
	struct profile_key key;
	struct digest digest = {{(uint8_t)scope, (uint8_t)kernel, 1}};
	char name[32];

	snprintf(name, sizeof(name), "namespace-%u", scope);
	if (!profile_key_make(&key, name, "NVIDIA H200", &digest))
		abort();
	return key;
}

static void fill(struct profiles *profiles)
{
	for (unsigned i = 0; i < PROFILES_MAX; i++) {
		struct profile_key key = key_of(i % SCOPES, i / SCOPES % KERNELS);
		struct weir_profile values = {
			.geometry = {{1 + i, 1, 1}, {256, 1, 1}, 0, 132, 100, 0},
			.native = 1000000};
		if (profiles_put(profiles, &key, &values, i) < 0)
			abort();
	}
}

int main(void)
{
	struct profiles profiles = {0}, again = {0};
	struct weir_profile found[WEIR_PROFILE_KERNEL];
	size_t before = mallinfo2().uordblks, size;
	uint64_t most = 0, sum = 0, hits = 0;

	fill(&profiles);
	size_t bytes = mallinfo2().uordblks - before;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct profile_key key = key_of(i * 7919u % SCOPES, i * 31u % (KERNELS + 1));
		uint64_t began = monotonic_now();
		hits += profiles_find(&profiles, &key, i, found) == GEOMETRIES;
		uint64_t took = monotonic_now() - began;
		sum += took;
		most = larger(most, took);
	}
	uint64_t began = monotonic_now();
	uint8_t *file = profile_file_format(&profiles, &size);
	uint64_t formatted = monotonic_now();
	if (!file || profile_file_parse(&again, file, size))
		abort();
	printf("{\"profiles\": %u, \"bytes\": %zu, \"lookup_us\": %.3f, \"lookup_max_us\": %.3f, "
	       "\"hits\": %.2f, \"file_bytes\": %zu, \"format_ms\": %.2f, \"parse_ms\": %.2f}\n",
	       profiles.n, bytes, (double)sum / ROUNDS / 1e3, (double)most / 1e3,
	       (double)hits / ROUNDS, size, (double)(formatted - began) / 1e6,
	       (double)(monotonic_now() - formatted) / 1e6);
	free(file);
	profiles_deinit(&profiles);
	profiles_deinit(&again);
	return 0;
}
