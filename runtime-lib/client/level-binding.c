#include "client/level-binding.h"

#include "weir/log.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct {
	struct page *pages; /* link thread; or whoever sets the client up */
	size_t n_pages;
	_Atomic(struct level_binding *) mailbox;
} states[CLIENTS_MAX];

static struct page *find(const struct client *client, const struct stat *info, bool writable)
{
	struct page *page = states[client->index].pages;

	while (page && (page->device_id != info->st_dev || page->inode != info->st_ino ||
			page->writable != writable))
		page = page->next;
	return page;
}

/* 0, or -errno. */
static int map_new(struct client *client, struct page **out, const struct stat *info, int fd,
		   bool writable)
{
	if (states[client->index].n_pages == PAGES_MAX)
		return -ENOSPC;
	void *memory = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | (writable ? PROT_WRITE : 0),
			    MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	struct page *page = malloc(sizeof(*page));
	if (!page) {
		munmap(memory, WEIR_PAGE_SIZE);
		return -ENOMEM;
	}
	/* A forked child must not seem to set demand. */
	madvise(memory, WEIR_PAGE_SIZE, MADV_DONTFORK);
	*page = (struct page){.next = states[client->index].pages,
			      .device_id = info->st_dev,
			      .inode = info->st_ino,
			      .writable = writable,
			      .memory = memory};
	states[client->index].n_pages++;
	*out = states[client->index].pages = page;
	return 0;
}

int binding_map_page(struct client *client, struct page **out, int fd, bool writable)
{
	struct stat info;

	if (fstat(fd, &info) < 0)
		return -errno;
	/* A shorter file would kill us with SIGBUS at the first access. */
	if (!S_ISREG(info.st_mode) || info.st_size < WEIR_PAGE_SIZE)
		return -EINVAL;
	*out = find(client, &info, writable);
	return *out ? 0 : map_new(client, out, &info, fd, writable);
}

void binding_unregister_pages(struct client *client)
{
	for (struct page *page = states[client->index].pages; page; page = page->next)
		atomic_store(&page->gpu, 0);
}

struct level_binding *binding_exchange(struct client *client, struct level_binding *next)
{
	return atomic_exchange(&states[client->index].mailbox, next);
}

bool binding_put_back(struct client *client, struct level_binding *binding)
{
	struct level_binding *none = NULL;

	return atomic_compare_exchange_strong(&states[client->index].mailbox, &none, binding);
}

bool binding_waits(const struct client *client)
{
	return atomic_load(&states[client->index].mailbox) != NULL;
}

uint64_t binding_expire_hold(const struct level_binding *binding, uint64_t now)
{
	struct weir_control_page *control = control_page(binding);
	uint64_t later = now + HOLD_LOOK;

	if (!atomic_load(&control->hold))
		return later;
	/* The agent writes the time before the word: it is this hold's time, or a later one's. */
	uint64_t until = atomic_load(&control->hold_until);
	if (!until)
		return later;
	if (now < until)
		return smaller(until, later);
	atomic_store(&control->hold, 0);
	log_limited(LOG_WARNING, 60,
		    "the agent has forgotten that it holds this process: it goes on");
	return later;
}
