/* Small helpers that every program uses; header only. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define countof(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(pointer, type, member) \
	((type *)((char *)(1 ? (pointer) : &((type *)0)->member) - offsetof(type, member)))

/* Runs @destructor on the variable at the end of its scope. */
#define cleanup(destructor) __attribute__((cleanup(destructor)))

/* The value of a variable, which becomes null: hands ownership over. */
#define take(pointer)                                   \
	({                                              \
		__typeof__(pointer) taken_ = (pointer); \
		(pointer) = NULL;                       \
		taken_;                                 \
	})
#define take_fd(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

/* ns, on the clock that nobody sets. */
static inline uint64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void freep(void *pointer)
{
	free(*(void **)pointer);
}

static inline void closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
