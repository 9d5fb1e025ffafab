/* The store of profiles: its bounds, who reads what, its file, and its JSON. */
#include "profile/profile-file.h"
#include "profile/profile-json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/log.h"
#include "weir/tickets.h"
#include "weir/transform.h"

static char folder[] = "/tmp/weir-profiles-XXXXXX";
static struct profiles store;
static struct weir_profile found[WEIR_PROFILE_KERNEL];

static struct profile_key key_of(const char *scope, unsigned kernel)
{
	struct digest digest = {{(uint8_t)kernel, (uint8_t)(kernel >> 8)}};
	struct profile_key key;

	assert_true(profile_key_make(&key, scope, "NVIDIA H200", &digest));
	return key;
}

static struct weir_profile profile_of(uint32_t grid, uint64_t native)
{
	return (struct weir_profile){
		.geometry = {{grid, 1, 1}, {256, 1, 1}, 0, 132, 100, 0},
		.native = native,
		.samples = 5,
		.choices = {{0},
			    {.form = WEIR_SLICED, .chunk = 64, .workers = 132, .ratio = 1015625},
			    {.form = WEIR_PERSISTENT,
			     .flags = WEIR_PROFILE_AHEAD | WEIR_PROFILE_APART,
			     .build = 1,
			     .chunk = 8,
			     .workers = 264,
			     .ratio = 1250000}}};
}

static void put(const char *scope, unsigned kernel, uint32_t grid, uint64_t native)
{
	struct profile_key key = key_of(scope, kernel);
	struct weir_profile values = profile_of(grid, native);

	assert_int_equal(profiles_put(&store, &key, &values, store.changes), 0);
}

static unsigned find(const char *scope, unsigned kernel)
{
	struct profile_key key = key_of(scope, kernel);

	return profiles_find(&store, &key, store.changes, found);
}

static int tear_down(void **state)
{
	(void)state;
	profiles_deinit(&store);
	return 0;
}

static void a_geometry_has_one_profile(void **state)
{
	(void)state;
	put("a", 1, 100, 5000);
	put("a", 1, 200, 6000);
	put("a", 1, 100, 7000);
	assert_int_equal(store.n, 2);
	assert_int_equal(find("a", 1), 2);
	assert_int_equal(found[0].native, 7000); /* the latest first */
	assert_int_equal(found[1].native, 6000);
	assert_int_equal(find("a", 2), 0);
	assert_int_equal(store.counters.hits, 1);
	assert_int_equal(store.counters.misses, 1);
}

static void scopes_do_not_read_each_other(void **state)
{
	struct profile_key key = key_of("a", 1);

	(void)state;
	put("a", 1, 100, 5000);
	assert_int_equal(find("b", 1), 0);
	assert_int_equal(find("", 1), 0);
	assert_true(profile_key_make(&key, "a", "another", &key.kernel));
	assert_int_equal(profiles_find(&store, &key, 1, found), 0);
}

static void what_is_for_everybody_comes_behind_the_own(void **state)
{
	(void)state;
	put("*", 1, 100, 1000);
	put("*", 1, 200, 2000);
	put("a", 1, 100, 5000);
	assert_int_equal(find("b", 1), 2);
	assert_int_equal(find("a", 1), 2);
	assert_int_equal(found[0].native, 5000);
	assert_int_equal(found[1].native, 2000);
}

static void a_kernel_keeps_its_latest_geometries(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= WEIR_PROFILE_KERNEL + 3; i++)
		put("a", 1, i, 1000 * i);
	assert_int_equal(find("a", 1), WEIR_PROFILE_KERNEL);
	assert_int_equal(found[0].geometry.grid[0], WEIR_PROFILE_KERNEL + 3);
	assert_int_equal(found[WEIR_PROFILE_KERNEL - 1].geometry.grid[0], 4);
	assert_int_equal(store.counters.evicted, 3);
}

static void a_full_scope_loses_what_was_not_used(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PROFILES_SCOPE_MAX; i++)
		put("a", i, 1, 1000);
	assert_int_equal(find("a", 0), 1);
	put("a", 9999, 1, 1000);
	assert_int_equal(store.n, PROFILES_SCOPE_MAX);
	assert_int_equal(find("a", 0), 1);
	assert_int_equal(find("a", 1), 0);
	assert_int_equal(find("a", 9999), 1);
}

/* A namespace that fills the store evicts its own profiles, not those of others. */
static void the_largest_scope_makes_room(void **state)
{
	static const char *const crowds[] = {"a", "b", "c", "d"};

	(void)state;
	put("small", 1, 1, 1000);
	put("*", 1, 1, 1000);
	for (unsigned i = 0; i < PROFILES_SCOPE_MAX; i++)
		for (size_t k = 0; k < countof(crowds); k++)
			put(crowds[k], i, 1, 1000);
	assert_int_equal(store.n, PROFILES_MAX);
	for (unsigned i = 0; i < 10; i++)
		put("late", i, 1, 1000);
	assert_int_equal(store.n, PROFILES_MAX);
	assert_int_equal(find("small", 1), 1);
	assert_int_equal(find("nobody", 1), 1);
	assert_int_equal(find("late", 0), 1);
}

/* Each scope has one profile, and so may the one that makes room. */
static void the_last_profile_of_a_scope_can_go(void **state)
{
	char scope[16];

	(void)state;
	for (unsigned i = 0; i < PROFILES_MAX; i++) {
		snprintf(scope, sizeof(scope), "s%u", i);
		put(scope, 1, 1, 1000);
	}
	put("s0", 2, 1, 1000);
	put("s9999", 2, 1, 1000);
	put("new", 2, 1, 1000);
	assert_int_equal(store.n, PROFILES_MAX);
	assert_int_equal(HASH_COUNT(store.kernels), PROFILES_MAX);
}

static void what_is_taught_is_checked(void **state)
{
	struct weir_profile values = profile_of(1, 1000);
	struct profile_key key = key_of("a", 1);

	(void)state;
	assert_true(profiles_learn(&store, &key, &values, 1, 1));
	values.native = 0;
	assert_false(profiles_learn(&store, &key, &values, 1, 1));
	assert_int_equal(store.counters.learned, 1);
	assert_int_equal(store.counters.refused, 1);
	assert_int_equal(find("a", 1), 1);
	assert_int_equal(found[0].native, 1000);
}

static void teaching_has_a_rate(void **state)
{
	struct weir_profile values = profile_of(1, 1000);
	struct profile_key key = key_of("a", 1), other = key_of("b", 1);
	uint64_t now = 2 * PROFILES_LEARN_NS;

	(void)state;
	for (unsigned i = 0; i < 2 * PROFILES_LEARN_MAX; i++)
		profiles_learn(&store, &key, &values, 1, now);
	assert_in_range(store.counters.learned, 1, PROFILES_LEARN_MAX + 1);
	assert_true(store.counters.refused);
	assert_true(profiles_learn(&store, &other, &values, 1, now));
	assert_true(profiles_learn(&store, &key, &values, 1, now + PROFILES_LEARN_NS));
}

static void forgets_a_scope(void **state)
{
	(void)state;
	put("a", 1, 1, 1000);
	put("a", 2, 1, 1000);
	put("b", 1, 1, 1000);
	assert_int_equal(profiles_forget(&store, "a", "another"), 0);
	assert_int_equal(profiles_forget(&store, "a", NULL), 2);
	assert_int_equal(find("a", 1), 0);
	assert_int_equal(find("b", 1), 1);
	assert_int_equal(profiles_forget(&store, NULL, NULL), 1);
	assert_null(store.kernels);
	assert_null(store.scopes);
}

/* The file */

static void path_of(char path[64], const char *end)
{
	snprintf(path, 64, "%s/profiles%s", folder, end);
}

static bool exists(const char *end)
{
	struct stat info;
	char path[64];

	path_of(path, end);
	return stat(path, &info) == 0;
}

static void write_file(const uint8_t *bytes, size_t size)
{
	char path[64];

	path_of(path, "");
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, size, out), size);
	fclose(out);
}

static void open_file(struct profile_file *file, struct loop *loop)
{
	char path[64];

	path_of(path, "");
	assert_int_equal(loop_init(loop), 0);
	assert_int_equal(profile_file_init(file, loop, &store, path), 0);
}

static void close_file(struct profile_file *file, struct loop *loop)
{
	profile_file_deinit(file);
	loop_deinit(loop);
	profiles_deinit(&store);
}

static void the_file_keeps_all(void **state)
{
	struct profile_file file;
	struct loop loop;

	(void)state;
	open_file(&file, &loop);
	assert_int_equal(store.n, 0);
	for (unsigned i = 0; i < 1000; i++)
		put(i % 2 ? "a" : "b", i, 1 + i, 1000 + i);
	assert_int_equal(find("a", 1), 1); /* now the one used last */
	profile_file_changed(&file);
	close_file(&file, &loop);
	assert_false(exists(".new"));

	open_file(&file, &loop);
	assert_int_equal(store.n, 1000);
	assert_int_equal(find("b", 500), 1);
	struct weir_profile wanted = profile_of(501, 1500);
	assert_memory_equal(&found[0], &wanted, sizeof(wanted));
	struct profile_scope *scope;
	HASH_FIND_STR(store.scopes, "a", scope);
	assert_int_equal(scope->by_use->kernel->key.kernel.bytes[0], 3);
	profiles_forget(&store, NULL, NULL);
	close_file(&file, &loop);
	open_file(&file, &loop);
	assert_int_equal(store.n, 0);
	close_file(&file, &loop);
}

/* The loop writes it in pieces, and goes on with what came meanwhile. */
static void the_loop_writes_the_file(void **state)
{
	struct profile_file file;
	struct loop loop;

	(void)state;
	open_file(&file, &loop);
	for (unsigned i = 0; i < 1000; i++)
		put("a", i, 1 + i, 1000 + i);
	profile_file_changed(&file);
	assert_true(file.waits);
	loop_timer_set(&file.timer, 0, 0);
	while (!file.bytes)
		assert_true(loop_step(&loop, 1000) >= 0);
	put("a", 1000, 1, 1000);
	profile_file_changed(&file);
	unsigned steps = 0;
	while (file.bytes) {
		assert_true(loop_step(&loop, 1000) >= 0);
		steps++;
	}
	assert_true(steps > 2);
	assert_true(file.waits);
	assert_true(exists(""));
	close_file(&file, &loop);
	open_file(&file, &loop);
	assert_int_equal(store.n, 1001);
	profiles_forget(&store, NULL, NULL);
	close_file(&file, &loop);
}

static void a_bad_file_is_set_aside(void **state)
{
	size_t size;

	(void)state;
	put("a", 1, 1, 1000);
	put("a", 2, 1, 1000);
	cleanup(freep) uint8_t *good = profile_file_format(&store, &size);
	for (unsigned fault = 0; fault < 7; fault++) {
		cleanup(freep) uint8_t *bad = malloc(size + 1);
		struct profile_file file;
		struct loop loop;
		size_t n = size;

		memcpy(bad, good, size);
		bad[size] = 0;
		switch (fault) {
		case 0:
			bad[0] ^= 1; /* magic */
			break;
		case 1:
			bad[8]++; /* version */
			break;
		case 2:
			bad[size / 2] ^= 4;
			break;
		case 3:
			n -= 1;
			break;
		case 4:
			n += 1;
			break;
		case 5:
			n = 0;
			break;
		default:
			bad[16] = 0xff; /* their number */
		}
		profiles_deinit(&store);
		write_file(bad, n);
		open_file(&file, &loop);
		assert_int_equal(store.n, 0);
		assert_false(exists(""));
		assert_true(exists(".bad"));
		put("a", 1, 1, 1000);
		close_file(&file, &loop);
		open_file(&file, &loop);
		assert_int_equal(store.n, 1);
		close_file(&file, &loop);
	}
}

/* JSON */

static void json_keeps_all(void **state)
{
	struct weir_profile values;
	struct profile_key key, wanted = key_of("a", 1);

	(void)state;
	put("a", 1, 1234, 5000000);
	cJSON *json = profile_json_make(store.all);
	assert_null(profile_json_read(json, NULL, &key, &values));
	assert_memory_equal(&key, &wanted, sizeof(key));
	assert_memory_equal(&values, &store.all->values, sizeof(values));
	assert_null(profile_json_read(json, "b", &key, &values));
	assert_string_equal(key.scope, "b");
	cJSON_DeleteItemFromObject(json, "namespace");
	assert_null(profile_json_read(json, NULL, &key, &values));
	assert_string_equal(key.scope, PROFILES_EVERYBODY);
	cJSON_Delete(json);
}

static void json_is_checked(void **state)
{
	static const char *const bad[] = {
		"{\"grid\": [1, 1]}",
		"{\"grid\": [1, 1, -1]}",
		"{\"grid\": 7}",
		"{\"block\": [1024, 1024, 1]}",
		"{\"kernel\": \"0\"}",
		"{\"shared\": \"much\"}",
		"{\"nativeNanoseconds\": 1e300}",
		"{\"choices\": []}",
		"{\"choices\": [{\"form\": \"x\"}, {\"form\": \"x\"}, {\"form\": \"x\"}]}",
		"{\"choices\": [{\"form\": \"sliced\"}, 0, 0]}",
	};
	struct weir_profile values;
	struct profile_key key;

	(void)state;
	put("a", 1, 1234, 5000000);
	for (size_t i = 0; i < countof(bad); i++) {
		cJSON *json = profile_json_make(store.all), *change = cJSON_Parse(bad[i]);
		assert_non_null(change);
		const char *name = change->child->string;
		cJSON_ReplaceItemInObject(json, name, cJSON_Duplicate(change->child, true));
		assert_non_null(profile_json_read(json, NULL, &key, &values));
		cJSON_Delete(change);
		cJSON_Delete(json);
	}
	assert_non_null(profile_json_read(NULL, NULL, &key, &values));
}

static int make_folder(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR);
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_geometry_has_one_profile),
		TEST(scopes_do_not_read_each_other),
		TEST(what_is_for_everybody_comes_behind_the_own),
		TEST(a_kernel_keeps_its_latest_geometries),
		TEST(a_full_scope_loses_what_was_not_used),
		TEST(the_largest_scope_makes_room),
		TEST(the_last_profile_of_a_scope_can_go),
		TEST(what_is_taught_is_checked),
		TEST(teaching_has_a_rate),
		TEST(forgets_a_scope),
		TEST(the_file_keeps_all),
		TEST(the_loop_writes_the_file),
		TEST(a_bad_file_is_set_aside),
		TEST(json_keeps_all),
		TEST(json_is_checked),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
