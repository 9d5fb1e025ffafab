#include "shm/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/async-hash.h"
#include "common/process.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"

#define FOLDER "memory"

struct memory_slot {
	struct memory *memory;
	uint32_t index;
	pid_t pid;
	int process;
	struct loop_io death;
};

struct file_name {
	char text[96];
};

static struct file_name file_of(const char *prefix, const char *name)
{
	struct file_name file;

	snprintf(file.text, sizeof(file.text), "%s-%s", prefix, name);
	return file;
}

static void remove_files(const struct folder *root, const char *name)
{
	region_page_remove(root, FOLDER, file_of("account", name).text);
	region_page_remove(root, FOLDER, file_of("limit", name).text);
}

/* A free slot has nothing reserved, and does not hold the lock. */
static void clear_slot(struct weir_account_page *account, uint32_t index)
{
	uint32_t held = index + 1;

	atomic_store(&account->slots[index].reserved, 0);
	atomic_store(&account->slots[index].pid, 0);
	atomic_compare_exchange_strong(&account->lock, &held, 0);
}

/* Forgets the process, but leaves what the page says. */
static void slot_free(struct memory_slot *slot)
{
	struct memory *memory = slot->memory;

	memory->slots[slot->index] = NULL;
	memory->n--;
	memory->memories->n--;
	loop_io_deinit(&slot->death);
	closep(&slot->process);
	free(slot);
}

static void memory_free(struct memory *memory)
{
	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++)
		if (memory->slots[i])
			slot_free(memory->slots[i]);
	HASH_DEL(memory->memories->all, memory);
	region_page_deinit(&memory->limit);
	region_page_deinit(&memory->account);
	free(memory);
}

/* No process is left. */
static void memory_end(struct memory *memory)
{
	remove_files(memory->memories->root, memory->name);
	memory_free(memory);
}

static void process_died(struct loop_io *io)
{
	struct memory_slot *slot = container_of(io, struct memory_slot, death);
	struct memory *memory = slot->memory;

	clear_slot(memory->account.account, slot->index);
	slot_free(slot);
	if (memory->n == 0)
		memory_end(memory);
}

/* Takes @process, even if it fails. */
static int slot_new(struct memory *memory, uint32_t index, pid_t pid, int process)
{
	struct memory_slot *slot = process < 0 ? NULL : calloc(1, sizeof(*slot));

	if (!slot) {
		closep(&process);
		return error_origin(-ENOMEM);
	}
	*slot = (struct memory_slot){
		.memory = memory, .index = index, .pid = pid, .process = process};
	memory->slots[index] = slot;
	memory->n++;
	memory->memories->n++;
	int r = loop_io_init(&slot->death, memory->memories->loop, process, EPOLLIN, process_died);
	if (r < 0) {
		slot_free(slot);
		return error_origin(r);
	}
	atomic_store(&memory->account.account->slots[index].pid, (uint32_t)pid);
	return 0;
}

static bool same_container(const struct container_identity *a, const struct container_identity *b)
{
	if (a->in_pod != b->in_pod)
		return false;
	if (a->in_pod)
		return strcmp(a->pod_uid, b->pod_uid) == 0 &&
		       strcmp(a->container_id, b->container_id) == 0;
	return a->uid == b->uid && strcmp(a->cgroup, b->cgroup) == 0;
}

/* The error is the agent's own trouble, and does not tell whether a process lives. */
static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* A pidfd, or a negative errno. The page says @pid, so check that it is a process of the container.
 */
static int open_process(const struct container_identity *identity, uint32_t pid)
{
	struct container_identity found = {0};

	cleanup(closep) int process = process_open((pid_t)pid);
	int r = process < 0 ? process : container_identify(&found, (pid_t)pid);
	if (r < 0)
		return r;
	return same_container(&found, identity) ? take_fd(process) : -ESRCH;
}

static int find_slot(const struct memory *memory, pid_t pid)
{
	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++)
		if (memory->slots[i] && memory->slots[i]->pid == pid)
			return (int)i;
	return -1;
}

/* Processes that live keep their slots from before the agent's restart, even if the node is full.
 * A container can write the page, but not take more slots than it has processes. An error leaves
 * the slots as they are. */
static int adopt(struct memory *memory, const struct container_identity *identity)
{
	struct weir_account_page *account = memory->account.account;

	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++) {
		uint32_t pid = atomic_load(&account->slots[i].pid);
		/* Skips the free ones, which are most of a thousand: clients wait meanwhile. */
		bool claimed = pid && find_slot(memory, (pid_t)pid) < 0;
		int r = claimed ? open_process(identity, pid) : -ESRCH;
		if (r >= 0)
			r = slot_new(memory, i, (pid_t)pid, r);
		else if (!is_shortage(r)) {
			clear_slot(account, i);
			r = 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_pages(struct memory *memory)
{
	const struct folder *root = memory->memories->root;
	int r = region_page_init(&memory->limit, root, FOLDER, file_of("limit", memory->name).text);

	if (r == 0)
		r = region_page_init(&memory->account, root, FOLDER,
				     file_of("account", memory->name).text);
	if (r < 0)
		return r;
	memory->limit.limit->magic = memory->account.account->magic = WEIR_PROTOCOL_MAGIC;
	memory->limit.limit->version = memory->account.account->version = WEIR_PROTOCOL_VERSION;
	return 0;
}

static bool format_name(char out[DIGEST_TEXT], const char *key)
{
	struct digest digest;

	if (EVP_Digest(key, strlen(key), digest.bytes, NULL, EVP_sha256(), NULL) != 1)
		return false;
	digest_format(&digest, out);
	return true;
}

static void format_key(char *out, size_t size, const char *tenant, const char *gpu)
{
	snprintf(out, size, "%s %s", gpu, tenant);
}

static struct memory *memory_new(struct memories *memories, const struct memory_owner *owner)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory) {
		error_origin(-ENOMEM);
		return NULL;
	}
	memory->memories = memories;
	memory->limit = memory->account = REGION_PAGE_NONE;
	format_key(memory->key, sizeof(memory->key), owner->tenant, owner->gpu);
	memory->tenant = strchr(memory->key, ' ') + 1;
	HASH_ADD_STR(memories->all, key, memory);
	int r = format_name(memory->name, memory->key) ? open_pages(memory) : -EIO;
	/* Before adopt(), so that a slot is never without its limit. */
	if (r == 0 && owner->known) {
		atomic_store(&memory->limit.limit->limit, owner->limit);
		atomic_store(&memory->limit.limit->wait_ms, owner->wait_ms);
	}
	if (r == 0)
		r = adopt(memory, owner->identity);
	if (r < 0) {
		log_limited(LOG_ERROR, 1, "a memory account in stateDir: %s", strerror(-r));
		memory_free(memory);
		/* The sweep removes a file that was made. */
		loop_timer_set(&memories->sweep, MEMORY_SWEEP_NS, 0);
		return NULL;
	}
	return memory;
}

static bool has_files(const struct memories *memories, const char *key)
{
	char name[DIGEST_TEXT], path[128];
	struct stat info;

	if (!format_name(name, key))
		return false;
	snprintf(path, sizeof(path), FOLDER "/account-%s", name);
	return fstatat(memories->root->dir, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

struct memory *memories_get(struct memories *memories, const char *tenant, const char *gpu)
{
	struct memory *memory;
	char key[sizeof(memory->key)];

	format_key(key, sizeof(key), tenant, gpu);
	HASH_FIND_STR(memories->all, key, memory);
	return memory;
}

struct memory *memories_find(struct memories *memories, const struct memory_owner *owner)
{
	struct memory *memory = memories_get(memories, owner->tenant, owner->gpu);
	char key[sizeof(memory->key)];

	format_key(key, sizeof(key), owner->tenant, owner->gpu);
	if (memory || !has_files(memories, key))
		return memory;
	memory = memory_new(memories, owner);
	if (memory && memory->n == 0)
		memory_end(take(memory));
	return memory;
}

/* A container that has a limit of memory cannot work without a slot. Therefore other containers
 * cannot take its first ones. */
static bool has_room(const struct memory *memory)
{
	const struct memories *memories = memory->memories;
	unsigned n = 0;

	for (const struct memory *other = memories->all; other; other = other->hh.next)
		if (strcmp(other->tenant, memory->tenant) == 0)
			n += other->n;
	return n < memories->max_of_container && (n < MEMORY_FIRST || memories->n < memories->max);
}

/* Round robin, so that a slot is not used again at once. */
static int free_slot(struct memory *memory)
{
	if (!has_room(memory))
		return -ENOSPC;
	for (unsigned i = 0; i < WEIR_MEMORY_SLOTS; i++) {
		uint32_t at = (memory->next + i) % WEIR_MEMORY_SLOTS;
		if (memory->slots[at])
			continue;
		memory->next = at + 1;
		clear_slot(memory->account.account, at);
		return (int)at;
	}
	return -ENOSPC;
}

int memories_enter(struct memories *memories, const struct memory_owner *owner, pid_t pid,
		   int process, struct memory **out)
{
	struct memory *memory = memories_find(memories, owner);

	if (!memory)
		memory = memory_new(memories, owner);
	if (!memory)
		return -EIO;
	*out = memory;
	int slot = find_slot(memory, pid);
	if (slot < 0) {
		slot = free_slot(memory);
		int r = slot < 0 ? slot
				 : slot_new(memory, (uint32_t)slot, pid,
					    fcntl(process, F_DUPFD_CLOEXEC, 0));
		slot = r < 0 ? r : slot;
	}
	/* No process's death would end it. */
	if (memory->n == 0)
		memory_end(memory);
	return slot;
}

uint64_t memory_limit(const struct memory *memory)
{
	return atomic_load(&memory->limit.limit->limit);
}

uint64_t memory_reserved(const struct memory *memory)
{
	const struct weir_account_page *account = memory->account.account;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++)
		if (__builtin_add_overflow(sum, atomic_load(&account->slots[i].reserved), &sum))
			return UINT64_MAX;
	return sum;
}

void memories_mark(const char *path)
{
	/* O_EXCL: does not open a mark that is there, on which a pod may have a lease. */
	cleanup(closep) int fd = file_open(AT_FDCWD, path, O_RDONLY | O_CREAT | O_EXCL);

	if (fd < 0 && fd != -EEXIST)
		log_error("%s: %s; processes that start without an agent have no limit of memory",
			  path, strerror(-fd));
}

bool memories_marked(const struct memories *memories)
{
	return faccessat(AT_FDCWD, memories->mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool any_lives(const struct weir_account_page *account)
{
	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++) {
		cleanup(closep) int process =
			process_open((pid_t)atomic_load(&account->slots[i].pid));
		if (process >= 0 || is_shortage(process))
			return true;
	}
	return false;
}

static bool is_open(const struct memories *memories, const char *name)
{
	for (const struct memory *memory = memories->all; memory; memory = memory->hh.next)
		if (strcmp(memory->name, name) == 0)
			return true;
	return false;
}

/* An account from before the restart stays while one of its processes may live. */
static bool may_live(int folder, const char *name)
{
	struct weir_account_page account;
	cleanup(closep) int fd =
		file_open(folder, file_of("account", name).text, O_RDONLY | O_NOFOLLOW);

	/* EWOULDBLOCK: a process of the container has a lease on it, so it lives. */
	if (fd < 0)
		return fd == -EWOULDBLOCK || is_shortage(fd);
	return pread(fd, &account, sizeof(account), 0) == (ssize_t)sizeof(account) &&
	       any_lives(&account);
}

/* True: the file stays although no account has it open. */
static bool look_at(const struct memories *memories, int folder, const char *file)
{
	const char *dash = strchr(file, '-');

	if (!dash || strlen(dash + 1) > 64 || is_open(memories, dash + 1))
		return false;
	if (may_live(folder, dash + 1))
		return true;
	remove_files(memories->root, dash + 1);
	return false;
}

void memories_sweep(struct memories *memories)
{
	DIR *folder = folder_list(memories->root, FOLDER);
	bool left = false;

	for (struct dirent *entry; folder && (entry = readdir(folder));)
		left |= look_at(memories, dirfd(folder), entry->d_name);
	if (folder)
		closedir(folder);
	if (left)
		loop_timer_set(&memories->sweep, MEMORY_SWEEP_NS, 0);
}

static void sweep_due(struct loop_timer *timer)
{
	memories_sweep(container_of(timer, struct memories, sweep));
}

int memories_init(struct memories *memories, struct loop *loop, const struct folder *root,
		  const char *socket, unsigned max, unsigned max_of_container)
{
	const char *end = strrchr(socket, '/');

	*memories = (struct memories){
		.loop = loop, .root = root, .max = max, .max_of_container = max_of_container};
	if (asprintf(&memories->mark, "%.*s" WEIR_LIMITED_NAME, end ? (int)(end - socket + 1) : 0,
		     socket) < 0) {
		memories->mark = NULL;
		return error_origin(-ENOMEM);
	}
	int r = loop_timer_init(&memories->sweep, loop, sweep_due);
	if (r == 0)
		memories_sweep(memories);
	return r;
}

void memories_deinit(struct memories *memories)
{
	while (memories->all)
		memory_free(memories->all);
	loop_timer_deinit(&memories->sweep);
	free(memories->mark);
	*memories = (struct memories){0};
}
