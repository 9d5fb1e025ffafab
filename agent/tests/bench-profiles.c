/* 10 000 profiles of 200 namespaces: memory, time of a look-up, and of the file. Prints one line of
 * JSON.
 *
 *   bench-profiles [FILE]   FILE: keeps the agent's file of these profiles
 */
#include "profile/profile-file.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
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

static uint32_t took[ROUNDS]; /* ns of each look-up */

static int compare(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return one < other ? -1 : one > other;
}

/* Returns the part of look-ups that found a kernel. Sorts their times. */
static double look_up(struct profiles *profiles)
{
	struct weir_profile found[WEIR_PROFILE_KERNEL];
	uint64_t hits = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct profile_key key = key_of(i * 7919u % SCOPES, i * 31u % (KERNELS + 1));
		uint64_t began = monotonic_now();
		hits += profiles_find(profiles, &key, i, found) == GEOMETRIES;
		took[i] = (uint32_t)smaller(monotonic_now() - began, UINT32_MAX);
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare);
	return (double)hits / ROUNDS;
}

static void keep(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

int main(int argc, char **argv)
{
	const size_t median = ROUNDS / 2, p99 = ROUNDS / 100 * 99;
	struct profiles profiles = {0}, again = {0};
	size_t before = mallinfo2().uordblks, size;

	fill(&profiles);
	size_t bytes = mallinfo2().uordblks - before;
	double hits = look_up(&profiles);
	uint64_t began = monotonic_now();
	uint8_t *file = profile_file_format(&profiles, &size);
	uint64_t formatted = monotonic_now();
	if (!file || profile_file_parse(&again, file, size))
		abort();
	uint64_t parsed = monotonic_now();
	if (argc > 1)
		keep(argv[1], file, size);
	printf("{\"profiles\": %u, \"bytes\": %zu, \"lookup_us\": %.3f, \"lookup_p99_us\": %.3f, "
	       "\"lookup_max_us\": %.3f, \"hits\": %.2f, \"file_bytes\": %zu, \"format_ms\": %.2f, "
	       "\"parse_ms\": %.2f}\n",
	       profiles.n, bytes, took[median] / 1e3, took[p99] / 1e3, took[ROUNDS - 1] / 1e3, hits,
	       size, (double)(formatted - began) / 1e6, (double)(parsed - formatted) / 1e6);
	free(file);
	profiles_deinit(&profiles);
	profiles_deinit(&again);
	return 0;
}
