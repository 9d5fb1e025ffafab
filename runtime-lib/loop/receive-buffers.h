/* Buffers for receives that are begun before anybody knows where their data goes. The kernel picks
 * one when there is data, so a connection that waits has none. One thread owns them. */
#pragma once

#include <liburing.h>
#include <stdint.h>

struct receive_buffers {
	struct io_uring_buf_ring *ring; /* NULL: there are none */
	uint8_t *memory;
};

/* The group's number, for struct io_uring_sqe. */
#define RECEIVE_BUFFERS_GROUP 0

/* Of IO_AHEAD_MOST bytes each. Linux before 5.19 has no such buffers: then there are none, which is
 * no error. -ENOMEM. */
int receive_buffers_init(struct receive_buffers *buffers, struct io_uring *uring);
/* Behind io_uring_queue_exit(). */
void receive_buffers_deinit(struct receive_buffers *buffers);

/* The one that the operation with these struct io_uring_cqe.flags has; NULL: it has none. */
void *receive_buffers_of(const struct receive_buffers *buffers, uint32_t flags);
/* It is idle again. NULL: nothing happens. */
void receive_buffers_give(struct receive_buffers *buffers, void *buffer);
