#include "client/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct page *find(struct client *client, const struct stat *info, bool writable)
{
	for (size_t i = 0; i < client->n_pages; i++) {
		struct page *page = &client->pages[i];
		if (page->device_id == info->st_dev && page->inode == info->st_ino &&
		    page->writable == writable)
			return page;
	}
	return NULL;
}

int pages_take(struct client *client, struct page **out, int fd, bool writable)
{
	struct stat info;

	if (fstat(fd, &info) < 0)
		return -errno;
	/* A shorter file would kill us with SIGBUS at the first access. */
	if (!S_ISREG(info.st_mode) || info.st_size < WEIR_PAGE_SIZE)
		return -EINVAL;
	struct page *page = find(client, &info, writable);
	if (!page) {
		if (client->n_pages == PAGES_MAX)
			return -ENOSPC;
		void *memory = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | (writable ? PROT_WRITE : 0),
				    MAP_SHARED, fd, 0);
		if (memory == MAP_FAILED)
			return -errno;
		/* A forked child has no use for them, and must not seem to set demand. */
		madvise(memory, WEIR_PAGE_SIZE, MADV_DONTFORK);
		page = &client->pages[client->n_pages++];
		page->device_id = info.st_dev;
		page->inode = info.st_ino;
		page->writable = writable;
		page->memory = memory;
		atomic_store(&page->gpu, 0);
	}
	*out = page;
	return 0;
}
