/* Objects from the compile service: made once, cached, and served unchanged. */
#include "compile-service.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_ptx(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	check_object(object_of(&one), true);
}

static void test_machine_code(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	get(&one, file_for(90));
	check_object(object_of(&one), false);
}

static void test_off(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_OFF});
	get(&one, file_for(90));
	assert_int_equal(one.status, WEIR_COMPILE_OFF);
	stop();
	start(&(struct config_compile){.mode = COMPILE_PTX,
				       .program = (char *)"/nowhere/weir-compile"});
	get(&one, file_for(90));
	assert_int_equal(one.status, WEIR_COMPILE_OFF);
}

/* The second answer comes from the cache, read-only. */
static void test_hit(void **state)
{
	char path[64];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	const struct weir_object *first = object_of(&one);
	get(&two, file_for(90));
	const struct weir_object *second = object_of(&two);
	assert_int_equal(compile.started, 1);
	assert_int_equal(compile.counters.hits, 1);
	assert_int_equal(compile.counters.misses, 1);
	assert_memory_equal(first, second, first->size);
	assert_int_equal(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, two.fd, 0) == MAP_FAILED, 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", two.fd);
	if (compile.cache.folder.readonly >= 0)
		assert_int_equal(open(path, O_RDWR), -1);
}

static unsigned forms_in(const struct weir_object *object)
{
	const struct weir_object_form *forms = (const void *)((const char *)object + object->forms);
	unsigned found = 0;

	for (uint32_t i = 0; i < object->n_forms; i++)
		found |= 1u << forms[i].form;
	return found;
}

/* Where a launch waits: an object with one form, unless there is one with all. */
static void test_soonest(void **state)
{
	const uint32_t all = PERSISTENT | 1u << WEIR_RESUMABLE;

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, fixture_file_with("add", ptx, PTX_SIZE, 90, all, WEIR_COMPILE_SOONEST));
	assert_int_equal(forms_in(object_of(&one)), 1u << WEIR_RESUMABLE);
	get(&one, fixture_file_with("add", ptx, PTX_SIZE, 90, all, WEIR_COMPILE_SOONEST));
	assert_int_equal(forms_in(object_of(&one)), 1u << WEIR_RESUMABLE);
	assert_int_equal(compile.started, 1);
	get(&one, fixture_file("add", ptx, PTX_SIZE, 90, all));
	assert_int_equal(forms_in(object_of(&one)), all);
	assert_int_equal(compile.started, 2);
	get(&one, fixture_file_with("add", ptx, PTX_SIZE, 90, all, WEIR_COMPILE_SOONEST));
	assert_int_equal(forms_in(object_of(&one)), all);
	assert_int_equal(compile.started, 2);
	assert_int_equal(compile.counters.hits, 2);
}

/* Each input of an object changes its key. */
static void test_keys(void **state)
{
	char other[sizeof(ptx)];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	memcpy(other, ptx, sizeof(ptx));
	*strstr(other, "1;") = '2';
	get(&one, file_for(90));
	get(&one, file_for(80));
	get(&one, fixture_file("add", ptx, PTX_SIZE, 90, 1u << WEIR_SLICED));
	get(&one, fixture_file("add", other, sizeof(other) - 1, 90, PERSISTENT));
	assert_int_equal(compile.started, 4);
	assert_int_equal(compile.counters.hits, 0);
	stop();
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	get(&one, file_for(90));
	assert_int_equal(compile.started, 1);
	assert_int_equal(HASH_COUNT(compile.cache.all), 5);
}

static void test_two_at_once(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	ask(&one, 1, file_for(90));
	ask(&two, 2, file_for(90));
	ask(&two, 3, file_for(90));
	fixture_wait(&loop, &one, 1);
	fixture_wait(&loop, &two, 2);
	assert_int_equal(compile.started, 1);
	check_object(object_of(&one), true);
	check_object(object_of(&two), true);
	assert_int_equal(compile.n_requests, 0);
	assert_null(compile.jobs);
}

static void test_survives_the_agent(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	stop();
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	check_object(object_of(&one), true);
	assert_int_equal(compile.started, 0);
	assert_int_equal(compile.counters.hits, 1);
}

static void open_only_file(int *fd, struct stat *info)
{
	DIR *dir = opendir(folder);
	char path[512];

	*fd = -1;
	for (struct dirent *file; (file = readdir(dir));) {
		if (file->d_name[0] == '.')
			continue;
		assert_int_equal(*fd, -1);
		snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
		assert_int_equal(chmod(path, 0600), 0);
		*fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(*fd >= 0);
	}
	closedir(dir);
	assert_int_equal(fstat(*fd, info), 0);
}

static void flip(int fd, off_t at)
{
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

/* An object damaged in its head or image, cut or removed is made again. */
static void test_damaged(void **state)
{
	struct stat info;
	int fd;

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	for (int damage = 0; damage < 4; damage++) {
		open_only_file(&fd, &info);
		if (damage == 0)
			flip(fd, 0);
		else if (damage == 1)
			flip(fd, info.st_size - 2);
		else if (damage == 2)
			assert_int_equal(ftruncate(fd, info.st_size / 2), 0);
		else
			empty(), assert_int_equal(mkdir(folder, 0700), 0);
		close(fd);
		get(&one, file_for(90));
		check_object(object_of(&one), true);
		assert_int_equal(compile.started, damage + 2);
		assert_int_equal(compile.counters.damaged, damage + 1);
	}
}

/* An object on which a client has a lease is replaced, and others get the new one. */
static void test_leased(void **state)
{
	(void)state;
	signal(SIGIO, SIG_IGN);
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	for (int taken = 1; taken <= 3; taken++) {
		int fd = fcntl(one.fd, F_DUPFD_CLOEXEC, 0);
		close(one.fd);
		one.fd = -1;
		assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
		get(&one, file_for(90));
		assert_int_equal(one.status, WEIR_COMPILE_OK);
		assert_int_equal(compile.started, taken + 1);
		get(&one, file_for(90));
		assert_int_equal(compile.counters.hits, taken);
		close(fd);
	}
	check_object(object_of(&one), true);
	assert_int_equal(compile.counters.damaged, 0);
	assert_int_equal(HASH_COUNT(compile.cache.all), 1);
}

/* The client gets its object although the disk is full. */
static void test_full_disk(void **state)
{
	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	if (mount("none", folder, "tmpfs", 0, "size=4096") < 0)
		skip();
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	check_object(object_of(&one), true);
	assert_int_equal(ftruncate(one.fd, 0), -1);
	assert_int_equal(pwrite(one.fd, "x", 1, 0), -1);
	get(&one, file_for(90));
	check_object(object_of(&one), true);
	assert_int_equal(compile.counters.unkept, 2);
	assert_int_equal(compile.cache.bytes, 0);
	stop();
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
	start(&(struct config_compile){.mode = COMPILE_PTX});
}

static unsigned count_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_nothing_grows(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&one, file_for(90));
	unsigned before = count_open();
	for (int i = 0; i < 100; i++) {
		get(&one, file_for(90));
		get(&one, fixture_sealed("x", 1, FIXTURE_SEALS));
		get(&one, file_for(90));
	}
	assert_int_equal(count_open(), before);
	assert_int_equal(compile.started, 1);
	assert_null(compile.jobs);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		COMPILE_TEST(test_ptx),         COMPILE_TEST(test_machine_code),
		COMPILE_TEST(test_off),         COMPILE_TEST(test_hit),
		COMPILE_TEST(test_soonest),     COMPILE_TEST(test_keys),
		COMPILE_TEST(test_two_at_once), COMPILE_TEST(test_survives_the_agent),
		COMPILE_TEST(test_damaged),     COMPILE_TEST(test_leased),
		COMPILE_TEST(test_full_disk),   COMPILE_TEST(test_nothing_grows),
	};

	misbehave_if_asked(argc, argv);
	return cmocka_run_group_tests(tests, make_name, NULL);
}
