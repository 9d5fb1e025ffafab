/* Pages shared with clients: what is on disk, and what a client can do with its descriptors. */
#include "shm/region.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/base.h"

#define NAME "GPU-1"

/* Needs root: a mount namespace and a small tmpfs of its own. */
static bool is_tmpfs;
static char folder[] = "/tmp/weir-test-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	is_tmpfs = unshare(CLONE_NEWNS) == 0 &&
		   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		   mount("tmpfs", folder, "tmpfs", 0, "size=128k") == 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (is_tmpfs)
		umount2(folder, MNT_DETACH);
	return rmdir(folder);
}

static int open_again(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags);
}

static void test_survives(void **state)
{
	struct folder root;
	struct region region;

	(void)state;
	assert_int_equal(region_root_init(&root, folder), 0);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	atomic_store(&region.pages[1].demand->word, 42);
	atomic_store(&region.taken->bits, 7);
	region_deinit(&region);
	folder_close(&root);

	assert_int_equal(region_root_init(&root, folder), 0);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	assert_int_equal(atomic_load(&region.pages[1].demand->word), 42);
	assert_int_equal(atomic_load(&region.pages[0].demand->word), 0);
	assert_int_equal(atomic_load(&region.taken->bits), 7);
	region_deinit(&region);
	region_remove(&root, NAME);
	assert_int_equal(faccessat(root.dir, NAME, F_OK, 0), -1);
	folder_close(&root);
}

static unsigned files_of(const struct folder *root)
{
	DIR *list = folder_list(root, NAME);
	unsigned n = 0;

	assert_non_null(list);
	for (const struct dirent *entry; (entry = readdir(list));)
		n += entry->d_name[0] != '.';
	closedir(list);
	return n;
}

/* The next agent finds the present generation, and opens gates that wait for the former ones. */
static void test_generations(void **state)
{
	struct weir_demand_page *first;
	struct folder root;
	struct region region;

	(void)state;
	assert_int_equal(region_root_init(&root, folder), 0);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	assert_false(region_has_retired(&region));
	first = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		     region.pages[1].writable, 0);
	assert_ptr_not_equal(first, MAP_FAILED);
	for (uint64_t i = 1; i <= 6; i++) {
		assert_int_equal(region_renew(&region, &root, NAME, 1, i), 0);
		assert_int_equal(atomic_load(&region.pages[1].demand->word), i);
	}
	region_deinit(&region);
	atomic_store(&first->word, 9);
	atomic_store(&first->whole, 9);
	atomic_store(&first->sms, 9);

	assert_int_equal(region_init(&region, &root, NAME), 0);
	assert_int_equal(atomic_load(&region.pages[1].demand->word), 6);
	assert_true(region_has_retired(&region));
	region_clear_retired(&region);
	assert_int_equal(atomic_load(&first->word), 0);
	assert_int_equal(atomic_load(&first->whole), 0);
	assert_int_equal(atomic_load(&first->sms), 0);
	assert_int_equal(atomic_load(&region.pages[1].demand->word), 6);
	assert_int_equal(atomic_load(&region.pages[1].demand->whole), 6);
	assert_int_equal(files_of(&root), 4 + 6);
	region_drop_retired(&region, &root, NAME);
	assert_int_equal(files_of(&root), 4);
	assert_false(region_has_retired(&region));
	munmap(first, WEIR_PAGE_SIZE);
	region_deinit(&region);
	region_remove(&root, NAME);
	assert_int_equal(faccessat(root.dir, NAME, F_OK, 0), -1);
	folder_close(&root);
}

/* No more are kept than there is room for. */
static void test_old_generations_go(void **state)
{
	struct folder root;
	struct region region;

	(void)state;
	assert_int_equal(region_root_init(&root, folder), 0);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	unsigned n = 0;
	while (n < 3 * REGION_RETIRED && region_renew(&region, &root, NAME, 0, 0) == 0)
		n++;
	assert_in_range(files_of(&root), 4 + 8, 4 + REGION_RETIRED);
	region_deinit(&region);
	region_remove(&root, NAME);
	folder_close(&root);
}

static void make_odd(const struct folder *root, const char *name, const char *kind)
{
	char path[128];

	snprintf(path, sizeof(path), NAME "/%s", name);
	mkdirat(root->dir, NAME, 0700);
	if (strcmp(kind, "folder") == 0)
		assert_int_equal(mkdirat(root->dir, path, 0700), 0);
	else if (strcmp(kind, "link") == 0)
		assert_int_equal(symlinkat("/etc/passwd", root->dir, path), 0);
	else if (strcmp(kind, "pipe") == 0)
		assert_int_equal(mkfifoat(root->dir, path, 0600), 0);
	else
		close(openat(root->dir, path, O_CREAT | O_WRONLY, 0600)); /* short */
}

static void test_odd_files(void **state)
{
	struct folder root;
	struct region region;
	struct stat info;

	(void)state;
	assert_int_equal(region_root_init(&root, folder), 0);
	make_odd(&root, "demand-0", "folder");
	make_odd(&root, "demand-1", "link");
	make_odd(&root, "demand-2", "pipe");
	make_odd(&root, "taken", "short");
	assert_int_equal(region_init(&region, &root, NAME), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fstat(region.pages[i].writable, &info), 0);
		assert_true(S_ISREG(info.st_mode));
		assert_int_equal(info.st_size, WEIR_PAGE_SIZE);
		assert_int_equal(atomic_load(&region.pages[i].demand->word), 0);
	}
	assert_int_equal(stat("/etc/passwd", &info), 0);
	region_deinit(&region);
	region_remove(&root, NAME);
	folder_close(&root);
}

/* Both descriptors show the same page, and the read-only one cannot write it. */
static void test_readonly(void **state)
{
	struct folder root;
	struct region region;

	(void)state;
	assert_int_equal(region_root_init(&root, folder), 0);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	struct weir_demand_page *page =
		mmap(NULL, WEIR_PAGE_SIZE, PROT_READ, MAP_SHARED, region.pages[0].readonly, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	atomic_store(&region.pages[0].demand->word, 5);
	assert_int_equal(atomic_load(&page->word), 5);
	assert_int_equal(mprotect(page, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE), -1);
	munmap(page, WEIR_PAGE_SIZE);
	assert_ptr_equal(mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			      region.pages[0].readonly, 0),
			 MAP_FAILED);
	if (root.readonly >= 0)
		assert_int_equal(open_again(region.pages[0].readonly, O_RDWR), -1);
	region_deinit(&region);
	region_remove(&root, NAME);
	folder_close(&root);
}

static bool can_guard(const struct region *region)
{
	int fd = open_again(region->pages[0].writable, O_RDWR);

	if (fd >= 0)
		close(fd);
	return is_tmpfs && fd < 0;
}

/* A client can write the page, but neither truncate nor punch nor reopen the file. */
static void test_protected(void **state)
{
	struct folder root;
	struct region region;
	struct stat info;

	(void)state;
	assert_int_equal(region_root_init(&root, folder), 0);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	if (!can_guard(&region)) {
		print_message("not permitted here: guards not tested\n");
	} else {
		atomic_store(&region.pages[0].demand->word, 5);
		assert_int_equal(ftruncate(region.pages[0].writable, 0), -1);
		assert_int_equal(fallocate(region.pages[0].writable,
					   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					   WEIR_PAGE_SIZE),
				 -1);
		assert_int_equal(fchmod(region.pages[0].writable, 0777), -1);
		assert_int_equal(fstat(region.pages[0].writable, &info), 0);
		assert_int_equal(info.st_size, WEIR_PAGE_SIZE);
		assert_int_equal(atomic_load(&region.pages[0].demand->word), 5);
	}
	region_deinit(&region);
	region_remove(&root, NAME);
	folder_close(&root);
}

static void test_full_disk(void **state)
{
	struct folder root;
	struct region region;
	char junk[4096] = {1};

	(void)state;
	if (!is_tmpfs)
		skip();
	assert_int_equal(region_root_init(&root, folder), 0);
	int fd = openat(root.dir, "junk", O_CREAT | O_WRONLY, 0600);
	while (write(fd, junk, sizeof(junk)) > 0)
		;
	assert_int_equal(region_init(&region, &root, NAME), -ENOSPC);
	unlinkat(root.dir, "junk", 0);
	close(fd);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	region_deinit(&region);
	region_remove(&root, NAME);
	folder_close(&root);
}

/* A client that outlives the agent takes a lease of @type on its descriptor of demand-0. A blocking
 * open would wait for 45 s (/proc/sys/fs/lease-break-time); alarm() ends this test after 30 s. */
static void start_despite_lease(int type)
{
	struct folder root;
	struct region region;

	assert_int_equal(region_root_init(&root, folder), 0);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	atomic_store(&region.pages[0].demand->word, 5);
	int client = fcntl(region.pages[0].readonly, F_DUPFD_CLOEXEC, 0);
	region_deinit(&region);
	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(client, F_SETLEASE, type), 0);

	alarm(30);
	assert_int_equal(region_init(&region, &root, NAME), 0);
	alarm(0);
	assert_int_equal(atomic_load(&region.pages[0].demand->word), 0); /* a new page */
	assert_int_equal(fcntl(client, F_SETLEASE, F_UNLCK), 0);
	region_deinit(&region);

	close(client);
	region_remove(&root, NAME);
	for (unsigned i = 0; i < 16; i++) {
		char aside[64];
		snprintf(aside, sizeof(aside), ".leased-%u-" NAME, i);
		region_remove(&root, aside);
	}
	folder_close(&root);
}

static void test_read_lease(void **state)
{
	(void)state;
	start_despite_lease(F_RDLCK);
}

static void test_write_lease(void **state)
{
	(void)state;
	start_despite_lease(F_WRLCK);
}

static void test_client_pages(void **state)
{
	struct region_pages pages;

	(void)state;
	assert_int_equal(region_pages_init(&pages), 0);
	assert_int_equal(pages.control->magic, WEIR_PROTOCOL_MAGIC);
	assert_int_equal(ftruncate(pages.control_fd, 0), -1);
	assert_int_equal(ftruncate(pages.status_fd, 1 << 20), -1);
	struct weir_status_page *status =
		mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, pages.status_fd, 0);
	atomic_store(&status->launches, 3);
	region_pages_close(&pages);
	assert_int_equal(atomic_load(&pages.status->launches), 3);
	munmap(status, WEIR_PAGE_SIZE);
	region_pages_deinit(&pages);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_survives),    cmocka_unit_test(test_odd_files),
		cmocka_unit_test(test_generations), cmocka_unit_test(test_old_generations_go),
		cmocka_unit_test(test_readonly),    cmocka_unit_test(test_protected),
		cmocka_unit_test(test_full_disk),   cmocka_unit_test(test_read_lease),
		cmocka_unit_test(test_write_lease), cmocka_unit_test(test_client_pages),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
