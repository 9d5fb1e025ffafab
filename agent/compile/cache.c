#include "compile/cache.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/object.h"

#define NAME_SIZE (2 * DIGEST_TEXT) /* KEY-CONTENT and NUL */
#define BLOCK     4096u

/* Counts whole blocks, so that the number of entries is bounded, too. */
static uint64_t charge(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

struct name {
	char text[NAME_SIZE];
};

static struct name name_of(const struct digest *key, const struct digest *content)
{
	struct name name;

	digest_format(key, name.text);
	name.text[DIGEST_TEXT - 1] = '-';
	digest_format(content, name.text + DIGEST_TEXT);
	return name;
}

static struct name draft_name(unsigned number)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "new-%u", number);
	return name;
}

static bool parse_name(const char *name, struct digest *key, struct digest *content)
{
	return strlen(name) == NAME_SIZE - 1 && name[DIGEST_TEXT - 1] == '-' &&
	       digest_parse(key, name, DIGEST_TEXT - 1) &&
	       digest_parse(content, name + DIGEST_TEXT, DIGEST_TEXT - 1);
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static struct cache_entry *look(struct cache *cache, const struct digest *key)
{
	struct cache_entry *entry;

	HASH_FIND(hh, cache->all, key, sizeof(*key), entry);
	return entry;
}

static void forget(struct cache *cache, struct cache_entry *entry)
{
	assert(cache->all);
	HASH_DEL(cache->all, entry);
	DL_DELETE(cache->by_use, entry);
	cache->bytes -= charge(entry->size);
	free(entry);
}

void cache_drop(struct cache *cache, struct cache_entry *entry)
{
	unlinkat(cache->folder.dir, name_of(&entry->key, &entry->content).text, 0);
	forget(cache, entry);
}

static void make_room(struct cache *cache, uint64_t bytes)
{
	while (cache->by_use && cache->bytes + bytes > cache->max) {
		cache_drop(cache, cache->by_use);
		cache->evicted++;
	}
}

static int add(struct cache *cache, const struct digest *key, const struct digest *content,
	       uint64_t size)
{
	struct cache_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return error_origin(-ENOMEM);
	*entry = (struct cache_entry){.key = *key, .content = *content, .size = size};
	HASH_ADD(hh, cache->all, key, sizeof(entry->key), entry);
	DL_APPEND(cache->by_use, entry);
	cache->bytes += charge(size);
	return 0;
}

/* Adds an object of an earlier agent. False: the file is none. */
static bool recall(struct cache *cache, const char *name)
{
	struct digest key, content;
	struct stat info;

	if (!parse_name(name, &key, &content) ||
	    fstatat(cache->folder.dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(info.st_mode) || info.st_nlink != 1 || info.st_size <= 0 ||
	    info.st_size > (off_t)WEIR_OBJECT_MAX)
		return false;
	struct cache_entry *same = look(cache, &key);
	if (same && is_newer(&same->used, &info.st_mtim))
		return false;
	if (same)
		cache_drop(cache, same);
	if (add(cache, &key, &content, (uint64_t)info.st_size) == 0)
		cache->by_use->prev->used = info.st_mtim;
	return true;
}

static int compare_use(const struct cache_entry *a, const struct cache_entry *b)
{
	return is_newer(&a->used, &b->used) - is_newer(&b->used, &a->used);
}

static bool is_neighbour(const char *name)
{
	return strncmp(name, CACHE_NEIGHBOUR, strlen(CACHE_NEIGHBOUR)) == 0;
}

/* Lists the objects, and removes all other files. */
static int recall_all(struct cache *cache)
{
	DIR *folder = folder_list(&cache->folder, ".");

	if (!folder)
		return error_origin(-errno);
	for (struct dirent *file; (file = readdir(folder));)
		if (!recall(cache, file->d_name) && !is_neighbour(file->d_name))
			unlinkat(cache->folder.dir, file->d_name, 0);
	closedir(folder);
	DL_SORT(cache->by_use, compare_use);
	make_room(cache, 0);
	return 0;
}

const struct cache_failure *cache_find_failure(const struct cache *cache, const struct digest *key)
{
	struct cache_failure *failure;

	HASH_FIND(hh, cache->failures, key, sizeof(*key), failure);
	return failure;
}

static void drop_failure(struct cache *cache, struct cache_failure *failure)
{
	assert(cache->failures);
	HASH_DEL(cache->failures, failure);
	DL_DELETE(cache->failures_by_age, failure);
	free(failure);
}

void cache_add_failure(struct cache *cache, const struct digest *key,
		       enum weir_compile_status status, const char *text)
{
	struct cache_failure *failure =
		cache_find_failure(cache, key) ? NULL : calloc(1, sizeof(*failure));

	if (!failure)
		return;
	if (HASH_COUNT(cache->failures) == CACHE_FAILURES_MAX)
		drop_failure(cache, cache->failures_by_age);
	failure->key = *key;
	failure->status = status;
	snprintf(failure->text, sizeof(failure->text), "%s", text);
	HASH_ADD(hh, cache->failures, key, sizeof(failure->key), failure);
	DL_APPEND(cache->failures_by_age, failure);
}

int cache_init(struct cache *cache, const char *path, uint64_t max)
{
	*cache = (struct cache){.max = max};
	int r = folder_open(&cache->folder, path, "compile.cacheDir",
			    "root in a container can change objects that others will run");
	if (r == 0)
		r = recall_all(cache);
	if (r < 0)
		cache_deinit(cache);
	return r;
}

void cache_deinit(struct cache *cache)
{
	while (cache->by_use)
		forget(cache, cache->by_use);
	while (cache->failures_by_age)
		drop_failure(cache, cache->failures_by_age);
	folder_close(&cache->folder);
}

struct cache_entry *cache_find(struct cache *cache, const struct digest *key)
{
	struct cache_entry *entry = look(cache, key);

	if (!entry)
		return NULL;
	DL_DELETE(cache->by_use, entry);
	DL_APPEND(cache->by_use, entry);
	/* The next agent sorts by time. */
	utimensat(cache->folder.dir, name_of(&entry->key, &entry->content).text, NULL,
		  AT_SYMLINK_NOFOLLOW);
	return entry;
}

int cache_open(const struct cache *cache, const struct cache_entry *entry)
{
	struct name name = name_of(&entry->key, &entry->content);
	struct stat info;
	cleanup(closep) int fd = folder_open_readonly(&cache->folder, name.text);
	bool other = fd == -ENOENT || fd == -EISDIR || fd == -EINVAL || fd == -ELOOP;
	if (fd < 0)
		return other ? -EIO : fd;
	if (fstat(fd, &info) < 0)
		return -errno;
	return info.st_size == (off_t)entry->size ? take_fd(fd) : -EIO;
}

int cache_draft(struct cache *cache, uint64_t size, struct cache_draft *out)
{
	if (charge(size) > cache->max)
		return -EFBIG;
	make_room(cache, charge(size));
	struct name name = draft_name(++cache->drafts);
	unlinkat(cache->folder.dir, name.text, 0);
	int fd = openat(cache->folder.dir, name.text,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0)
		return -errno;
	*out = (struct cache_draft){.fd = fd, .number = cache->drafts, .size = size};
	return 0;
}

int cache_keep(struct cache *cache, struct cache_draft *draft, const struct digest *key,
	       const struct digest *content)
{
	struct cache_entry *same = look(cache, key);
	struct name old = draft_name(draft->number), name = name_of(key, content);

	if (same)
		cache_drop(cache, same);
	make_room(cache, charge(draft->size)); /* other objects may have come meanwhile */
	int r = renameat(cache->folder.dir, old.text, cache->folder.dir, name.text) < 0 ? -errno
											: 0;
	if (r == 0)
		r = add(cache, key, content, draft->size);
	if (r < 0) {
		unlinkat(cache->folder.dir, name.text, 0);
		cache_discard(cache, draft);
		return r;
	}
	close(take_fd(draft->fd));
	return 0;
}

void cache_discard(struct cache *cache, struct cache_draft *draft)
{
	if (draft->fd < 0)
		return;
	unlinkat(cache->folder.dir, draft_name(draft->number).text, 0);
	close(take_fd(draft->fd));
}
