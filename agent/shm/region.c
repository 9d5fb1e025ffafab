#include "shm/region.h"

#include "shm/demand-page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "weir/base.h"
#include "weir/file.h"
#include "weir/log.h"

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ull << 14)
#endif

#define WARNING_S 3600

struct open_request {
	int folder;
	const char *name;
	int result;
};

static int deny_truncation(void)
{
	struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_TRUNCATE};
	cleanup(closep) int fd =
		(int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	if (fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	return 0;
}

/* Runs in a thread of its own: the restriction applies to the thread. */
static void *open_denied(void *argument)
{
	struct open_request *request = argument;
	int r = deny_truncation();

	if (r < 0)
		log_limited(LOG_WARNING, WARNING_S,
			    "no Landlock (%s): clients can truncate the demand pages they write",
			    strerror(-r));
	request->result = file_open(request->folder, request->name, O_RDWR | O_NOFOLLOW);
	return NULL;
}

static int open_protected(int folder, const char *name)
{
	struct open_request request = {folder, name, -1};
	pthread_t thread;
	int r = pthread_create(&thread, NULL, open_denied, &request);

	if (r > 0)
		return -r;
	pthread_join(thread, NULL);
	return request.result;
}

static int set_immutable(int fd, bool on)
{
	int flags = 0;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -errno;
	int wanted = on ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
	return wanted != flags && ioctl(fd, FS_IOC_SETFLAGS, &wanted) < 0 ? -errno : 0;
}

static void protect(int fd)
{
	struct statfs info;
	int r = -EOPNOTSUPP;

	if (fstatfs(fd, &info) == 0 && info.f_type == TMPFS_MAGIC)
		r = set_immutable(fd, true);
	if (r < 0)
		log_limited(LOG_WARNING, WARNING_S,
			    "demand pages cannot be made immutable (%s): root in a container can "
			    "damage those that it writes",
			    r == -EOPNOTSUPP ? "stateDir is no tmpfs" : strerror(-r));
}

static void unprotect(int fd)
{
	set_immutable(fd, false);
}

#define TAKEN_NAME   "taken"
#define ASIDE_PREFIX ".leased-"
#define ASIDE_MAX    16

int region_root_init(struct folder *root, const char *path)
{
	return folder_open(root, path, "stateDir",
			   "root in a container can write the demand pages that it should only "
			   "read");
}

/* Makes a file of one zero page, whole or not at all. Allocates its memory now: a full disk is an
 * error here instead of a SIGBUS later. */
static int create_page(int folder, const char *name)
{
	char fresh[64];
	int r = 0;

	snprintf(fresh, sizeof(fresh), "%s.new", name);
	unlinkat(folder, fresh, 0);
	cleanup(closep) int fd = file_open(folder, fresh, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	r = -posix_fallocate(fd, 0, WEIR_PAGE_SIZE);
	if (r == 0 && renameat(folder, fresh, folder, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(folder, fresh, 0);
		return r;
	}
	return take_fd(fd);
}

/* Also removes a protected file, or a folder in its place. */
static void remove_page(int folder, const char *name)
{
	cleanup(closep) int fd = file_open(folder, name, O_RDONLY | O_NOFOLLOW);

	if (fd >= 0)
		unprotect(fd);
	if (unlinkat(folder, name, 0) < 0)
		unlinkat(folder, name, AT_REMOVEDIR);
}

/* -EWOULDBLOCK: the file is immutable, and a write lease prevents the open that would change this.
 */
static int replace_leased(int folder, const char *name)
{
	log_limited(LOG_WARNING, 60, "a process has a lease on %s in stateDir; replacing it", name);
	remove_page(folder, name);
	int fd = create_page(folder, name);
	return fd == -EPERM ? -EWOULDBLOCK : fd;
}

/* Opens the file for the agent itself, without protection. */
static int open_page(int folder, const char *name)
{
	cleanup(closep) int fd = file_open(folder, name, O_RDONLY | O_NOFOLLOW);
	struct stat info;

	if (fd == -ENOENT)
		return create_page(folder, name);
	if (fd == -EWOULDBLOCK)
		return replace_leased(folder, name);
	/* A symbolic link (-ELOOP), a folder or another kind is replaced below. */
	if (fd < 0 && fd != -ELOOP && fd != -EISDIR && fd != -EINVAL)
		return fd;
	if (fd < 0 || fstat(fd, &info) < 0 || info.st_size != WEIR_PAGE_SIZE ||
	    info.st_nlink != 1) {
		log_warning("%s in stateDir is not a page file; replacing it", name);
		remove_page(folder, name);
		return create_page(folder, name);
	}
	unprotect(fd);
	int writable = file_open(folder, name, O_RDWR | O_NOFOLLOW);
	return writable == -EWOULDBLOCK ? replace_leased(folder, name) : writable;
}

static int map_page(int fd, int protection, void *out)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, protection, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	*(void **)out = page;
	return 0;
}

static void unmap_page(const void *page)
{
	if (page)
		munmap((void *)page, WEIR_PAGE_SIZE);
}

static int fill_page(struct region_page *page, const struct folder *root, int folder,
		     const char *name, const char *file)
{
	cleanup(closep) int fd = open_page(folder, file);
	char path[128];

	if (fd < 0)
		return fd;
	page->writable = open_protected(folder, file);
	if (page->writable < 0)
		return page->writable;
	snprintf(path, sizeof(path), "%s/%s", name, file);
	page->readonly = folder_open_readonly(root, path);
	if (page->readonly < 0)
		return page->readonly;
	protect(fd);
	return map_page(fd, PROT_READ | PROT_WRITE, &page->page);
}

static int init_page(struct region_page *page, const struct folder *root, int folder,
		     const char *name, const char *file)
{
	*page = REGION_PAGE_NONE;
	int r = fill_page(page, root, folder, name, file);

	if (r < 0)
		region_page_deinit(page);
	return r;
}

static int open_folder(const struct folder *root, const char *name)
{
	int fd = -1;

	if (mkdirat(root->dir, name, 0700) == 0 || errno == EEXIST)
		fd = openat(root->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int region_page_init(struct region_page *page, const struct folder *root, const char *folder,
		     const char *file)
{
	cleanup(closep) int dir = open_folder(root, folder);

	return dir < 0 ? dir : init_page(page, root, dir, folder, file);
}

void region_page_deinit(struct region_page *page)
{
	unmap_page(page->page);
	closep(&page->writable);
	closep(&page->readonly);
	*page = REGION_PAGE_NONE;
}

void region_page_remove(const struct folder *root, const char *folder, const char *file)
{
	cleanup(closep) int dir =
		openat(root->dir, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir >= 0)
		remove_page(dir, file);
}

struct demand_name {
	char text[40];
};

static struct demand_name demand_name(unsigned level, uint64_t generation)
{
	struct demand_name name;

	if (generation)
		snprintf(name.text, sizeof(name.text), "demand-%u.%llu", level,
			 (unsigned long long)generation);
	else
		snprintf(name.text, sizeof(name.text), "demand-%u", level);
	return name;
}

static _Atomic uint64_t *generation_of(const struct region *region, unsigned level)
{
	return &region->taken->generations[level];
}

/* Those of an earlier agent that are still there. */
static void init_retired(struct region *region, const struct folder *root, int folder,
			 const char *name, unsigned level)
{
	uint64_t last = atomic_load(generation_of(region, level));
	struct region_page page;

	for (uint64_t age = 1; age <= REGION_RETIRED && age <= last; age++) {
		struct demand_name file = demand_name(level, last - age);
		if (faccessat(folder, file.text, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
		    init_page(&page, root, folder, name, file.text) < 0)
			continue;
		region->retired[level][(last - age) % REGION_RETIRED] = take(page.demand);
		region_page_deinit(&page);
	}
}

static int init_taken(struct region *region, int folder)
{
	cleanup(closep) int fd = open_page(folder, TAKEN_NAME);

	return fd < 0 ? fd : map_page(fd, PROT_READ | PROT_WRITE, &region->taken);
}

static int open_region(struct region *region, const struct folder *root, const char *name)
{
	*region = (struct region){.pages = {REGION_PAGE_NONE, REGION_PAGE_NONE, REGION_PAGE_NONE}};
	cleanup(closep) int folder = open_folder(root, name);
	int r = folder < 0 ? folder : init_taken(region, folder);

	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS && r == 0; level++) {
		uint64_t last = atomic_load(generation_of(region, level));
		r = init_page(&region->pages[level], root, folder, name,
			      demand_name(level, last).text);
		init_retired(region, root, folder, name, level);
	}
	if (r < 0)
		region_deinit(region);
	return r;
}

/* Opens its gates. */
static void drop_page(const struct folder *root, const char *name, struct weir_demand_page **page,
		      unsigned level, uint64_t generation)
{
	if (!*page)
		return;
	demand_page_clear(*page);
	unmap_page(take(*page));
	region_page_remove(root, name, demand_name(level, generation).text);
}

int region_renew(struct region *region, const struct folder *root, const char *name, unsigned level,
		 uint64_t word)
{
	uint64_t last = atomic_load(generation_of(region, level));
	struct weir_demand_page **slot = &region->retired[level][last % REGION_RETIRED];
	struct demand_name file = demand_name(level, last + 1);
	struct region_page page;

	region_page_remove(root, name, file.text);
	int r = region_page_init(&page, root, name, file.text);
	if (r < 0) {
		log_limited(LOG_ERROR, 60, "%s of %s in stateDir: %s", file.text, name,
			    strerror(-r));
		return r;
	}
	demand_page_set(page.demand, word);
	drop_page(root, name, slot, level, last - REGION_RETIRED);
	*slot = take(region->pages[level].demand);
	region_page_deinit(&region->pages[level]);
	region->pages[level] = page;
	atomic_store(generation_of(region, level), last + 1);
	return 0;
}

static struct weir_demand_page *retired_page(const struct region *region, unsigned i)
{
	return region->retired[i / REGION_RETIRED][i % REGION_RETIRED];
}

bool region_has_retired(const struct region *region)
{
	for (unsigned i = 0; i < WEIR_DEMAND_LEVELS * REGION_RETIRED; i++)
		if (retired_page(region, i))
			return true;
	return false;
}

void region_clear_retired(const struct region *region)
{
	for (unsigned i = 0; i < WEIR_DEMAND_LEVELS * REGION_RETIRED; i++)
		if (retired_page(region, i))
			demand_page_clear(retired_page(region, i));
}

void region_drop_retired(struct region *region, const struct folder *root, const char *name)
{
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		uint64_t last = atomic_load(generation_of(region, level));
		for (uint64_t age = 1; age <= REGION_RETIRED && age <= last; age++)
			drop_page(root, name,
				  &region->retired[level][(last - age) % REGION_RETIRED], level,
				  last - age);
	}
}

/* Renames the folder of a leased file that cannot be removed. Removes such folders of earlier
 * calls, if their leases have ended. */
static void move_aside(const struct folder *root, const char *name)
{
	char aside[NAME_MAX + 1];

	for (unsigned i = 0; i < ASIDE_MAX; i++) {
		snprintf(aside, sizeof(aside), ASIDE_PREFIX "%u-%s", i, name);
		region_remove(root, aside);
		if (renameat(root->dir, name, root->dir, aside) == 0)
			return;
	}
}

int region_init(struct region *region, const struct folder *root, const char *name)
{
	int r = open_region(region, root, name);

	if (r == -EWOULDBLOCK) {
		move_aside(root, name);
		r = open_region(region, root, name);
	}
	if (r < 0)
		log_limited(LOG_ERROR, 1, "demand pages of %s in stateDir: %s", name, strerror(-r));
	return r;
}

void region_deinit(struct region *region)
{
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		region_page_deinit(&region->pages[level]);
		for (unsigned i = 0; i < REGION_RETIRED; i++)
			unmap_page(region->retired[level][i]);
	}
	unmap_page(region->taken);
	*region = (struct region){.pages = {REGION_PAGE_NONE, REGION_PAGE_NONE, REGION_PAGE_NONE}};
}

void region_remove(const struct folder *root, const char *name)
{
	DIR *list = folder_list(root, name);

	if (!list)
		return;
	for (const struct dirent *entry; (entry = readdir(list));)
		if (entry->d_name[0] != '.')
			remove_page(dirfd(list), entry->d_name);
	closedir(list);
	unlinkat(root->dir, name, AT_REMOVEDIR);
}

static int sealed_page(const char *name, int protection, int *fd_out, void *page_out)
{
	cleanup(closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, WEIR_PAGE_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	int r = map_page(fd, protection, page_out);
	if (r == 0)
		*fd_out = take_fd(fd);
	return r;
}

int region_pages_init(struct region_pages *pages)
{
	*pages = (struct region_pages){.control_fd = -1, .status_fd = -1};
	int r = sealed_page("weir-control", PROT_READ | PROT_WRITE, &pages->control_fd,
			    &pages->control);
	if (r == 0)
		r = sealed_page("weir-status", PROT_READ, &pages->status_fd, &pages->status);
	if (r < 0) {
		log_limited(LOG_ERROR, 1, "pages for a client: %s", strerror(-r));
		region_pages_deinit(pages);
		return r;
	}
	pages->control->magic = WEIR_PROTOCOL_MAGIC;
	pages->control->version = WEIR_PROTOCOL_VERSION;
	return 0;
}

void region_pages_close(struct region_pages *pages)
{
	closep(&pages->control_fd);
	closep(&pages->status_fd);
	pages->control_fd = pages->status_fd = -1;
}

void region_pages_deinit(struct region_pages *pages)
{
	region_pages_close(pages);
	unmap_page(pages->control);
	unmap_page(pages->status);
	pages->control = NULL;
	pages->status = NULL;
}
