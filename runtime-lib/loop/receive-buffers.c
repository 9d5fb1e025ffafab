#include "loop/receive-buffers.h"

#include "loop/io.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define COUNT 256u /* a power of two */
#define BYTES (COUNT * sizeof(struct io_uring_buf))

static void add(struct receive_buffers *buffers, uint32_t number)
{
	io_uring_buf_ring_add(buffers->ring, buffers->memory + (size_t)number * IO_AHEAD_MOST,
			      IO_AHEAD_MOST, (unsigned short)number, COUNT - 1, 0);
	io_uring_buf_ring_advance(buffers->ring, 1);
}

int receive_buffers_init(struct receive_buffers *buffers, struct io_uring *uring)
{
	struct io_uring_buf_reg reg = {.ring_entries = COUNT, .bgid = RECEIVE_BUFFERS_GROUP};
	void *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* A page's beginning, whatever the size of pages. */
	buffers->ring = pages == MAP_FAILED ? NULL : pages;
	buffers->memory = malloc((size_t)COUNT * IO_AHEAD_MOST);
	if (!buffers->ring || !buffers->memory) {
		receive_buffers_deinit(buffers);
		return -ENOMEM;
	}
	reg.ring_addr = (uint64_t)(uintptr_t)buffers->ring;
	if (io_uring_register_buf_ring(uring, &reg, 0)) {
		receive_buffers_deinit(buffers);
		return 0;
	}
	io_uring_buf_ring_init(buffers->ring);
	for (uint32_t i = 0; i < COUNT; i++)
		add(buffers, i);
	return 0;
}

void receive_buffers_deinit(struct receive_buffers *buffers)
{
	if (buffers->ring)
		munmap(buffers->ring, BYTES);
	free(buffers->memory);
	*buffers = (struct receive_buffers){0};
}

void *receive_buffers_of(const struct receive_buffers *buffers, uint32_t flags)
{
	if (!(flags & IORING_CQE_F_BUFFER))
		return NULL;
	return buffers->memory + (size_t)(flags >> IORING_CQE_BUFFER_SHIFT) * IO_AHEAD_MOST;
}

void receive_buffers_give(struct receive_buffers *buffers, void *buffer)
{
	if (buffer)
		add(buffers, (uint32_t)((uint8_t *)buffer - buffers->memory) / IO_AHEAD_MOST);
}
