/* The protocol's first version (a881674), as its libraries and agents know it. Never edit it.
 * Fields that came later are reserved here. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define OLD_MAGIC         0x52494557u
#define OLD_VERSION       1u
#define OLD_PAGE_SIZE     4096u
#define OLD_DEMAND_LEVELS 3u
#define OLD_MESSAGE_MAX   512u
#define OLD_FDS_MAX       8u

enum old_type { OLD_HELLO = 1, OLD_WELCOME = 2, OLD_LEVEL = 3, OLD_REFUSED = 4 };

struct old_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t size;
	uint32_t reserved;
};

struct old_hello {
	struct old_header header;
	uint8_t gpu[16];
	uint8_t claimed_bit; /* 0xff: none */
	uint8_t reserved0[3];
	uint32_t context;
	char library[32];
	uint8_t reserved[64];
};

/* Descriptors: control page, status page, then those of the level: the page to wait for, read only,
 * but at level 3, and a writable one for each level below. */
struct old_welcome {
	struct old_header header;
	uint8_t level;
	uint8_t bit;
	uint8_t reserved0[6];
	uint64_t client;
	uint8_t reserved[64];
};

struct old_demand_page {
	_Atomic uint64_t word;
	uint8_t reserved[OLD_PAGE_SIZE - 8];
};

struct old_control_page {
	uint32_t magic;
	uint32_t version;
	_Atomic uint32_t level;
	_Atomic uint32_t flags;
	_Atomic uint32_t above;
	_Atomic uint32_t epoch;
	_Atomic uint64_t memory_limit;
	_Atomic uint32_t share;
	uint8_t reserved0[64 - 36];
	_Atomic uint32_t hold;
	uint8_t reserved[OLD_PAGE_SIZE - 68];
};

struct old_status_page {
	uint32_t magic;
	uint32_t version;
	_Atomic uint64_t launches;
	_Atomic uint64_t outstanding;
	_Atomic uint64_t gpu_time;
	_Atomic uint64_t remaining;
	_Atomic uint64_t gates;
	_Atomic uint64_t gates_closed;
	_Atomic uint64_t waits;
	_Atomic uint64_t wait_time;
	_Atomic uint64_t evictions;
	_Atomic uint32_t level;
	uint8_t reserved[OLD_PAGE_SIZE - 84];
};

_Static_assert(sizeof(struct old_hello) == 136, "as it was");
_Static_assert(sizeof(struct old_welcome) == 96, "as it was");
_Static_assert(sizeof(struct old_demand_page) == OLD_PAGE_SIZE, "as it was");
_Static_assert(sizeof(struct old_control_page) == OLD_PAGE_SIZE, "as it was");
_Static_assert(sizeof(struct old_status_page) == OLD_PAGE_SIZE, "as it was");
