/* Small helpers that every program uses; header only. With integers, atomics, memory and clocks of
 * the C library, which files that include it need not name. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define countof(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(pointer, type, member) \
	((type *)((char *)(1 ? (pointer) : &((type *)0)->member) - offsetof(type, member)))

/* Of functions that each launch passes through: the linker lays them together. */
#define launch_path __attribute__((hot))
/* Of what few launches need: in a function of its own it costs the others no register or stack. */
#define kept_apart __attribute__((noinline))
/* Of the body that all kinds of launch share: part of each caller, which saves a call. */
#define always_inlined inline __attribute__((always_inline))

/* Atomics with their order in the name. Relaxed: other memory may be seen older or newer. */
#define load_relaxed(pointer)         atomic_load_explicit(pointer, memory_order_relaxed)
#define load_acquire(pointer)         atomic_load_explicit(pointer, memory_order_acquire)
#define store_relaxed(pointer, value) atomic_store_explicit(pointer, value, memory_order_relaxed)
#define store_release(pointer, value) atomic_store_explicit(pointer, value, memory_order_release)
#define add_relaxed(pointer, value)   atomic_fetch_add_explicit(pointer, value, memory_order_relaxed)

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

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

static inline uint64_t smaller(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

static inline uint64_t larger(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

/* UINT64_MAX instead of an overflow. */
static inline uint64_t saturating_add(uint64_t left, uint64_t right)
{
	return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

static inline uint64_t saturating_mul(uint64_t left, uint64_t right)
{
	uint64_t product;

	return __builtin_mul_overflow(left, right, &product) ? UINT64_MAX : product;
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ns, on the clock that nobody sets. */
static inline uint64_t monotonic_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
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
