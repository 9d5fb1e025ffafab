/* What the two sides of a loop share: the device side (weir/loop.cuh) and libweir-loop.a. Both are
 * of one build of one program, so nothing here is versioned.
 *
 * A loop has @blocks x @callbacks slots. Slot n belongs to callback n % callbacks of block
 * n / callbacks. A request of the GPU and its answer go through the slot of the callback that waits
 * for it, so nobody allocates slots.
 *
 *   GPU: data and struct weir_loop_request, then one 64-bit doorbell for all requests of a callback
 *   host: reads doorbells from its own memory, does the work, writes a 64-bit answer
 *   GPU: one thread of all blocks reads the answers, at most once in @poll_ns, and tells the blocks
 *
 * Doorbells and answers are rings of as many places as there are slots, at least. Each slot is in
 * each ring at most once, so nobody waits for room. An entry carries its lap, so nobody resets it.
 */
#ifndef WEIR_LOOP_ABI_H
#define WEIR_LOOP_ABI_H

#include <stdint.h>

#ifdef __cplusplus
#define WEIR_LOOP_ASSERT(condition, text) static_assert(condition, text)
extern "C" {
#else
#define WEIR_LOOP_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define WEIR_LOOP_CALLBACKS_MAX 32u    /* of a block at a time */
#define WEIR_LOOP_SLOTS_MAX     32768u /* of a loop */
#define WEIR_LOOP_INLINE        4096u  /* bytes beside a slot, for data up to this size */
#define WEIR_LOOP_PART          65536u /* bytes that a block copies from host memory, at most */
#define WEIR_LOOP_CAPTURE       112u   /* bytes of a callback's captured state */
#define WEIR_LOOP_SIZE_MAX      0x7ffff000u /* bytes of one read, write, receive or send */
#define WEIR_LOOP_NO_SLOT       0xffffu

enum weir_loop_op {
	WEIR_LOOP_OPEN = 1, /* path inline; size: its length; extra: flags | mode << 32 */
	WEIR_LOOP_CLOSE,
	WEIR_LOOP_READ, /* up to size bytes at offset to address */
	WEIR_LOOP_WRITE,
	WEIR_LOOP_FSYNC,
	WEIR_LOOP_SIZE,
	WEIR_LOOP_LISTEN,  /* address inline; size: its length; extra: backlog, least << 32 */
	WEIR_LOOP_ACCEPT,  /* file: a listener */
	WEIR_LOOP_CONNECT, /* as LISTEN */
	WEIR_LOOP_RECEIVE, /* extra: 1: all of it, unless the other side closes before */
	WEIR_LOOP_SEND,
	WEIR_LOOP_RECEIVE_ANY, /* file: a listener; any of its connections that has data; extra: as
				  RECEIVE */
	WEIR_LOOP_TIMER,       /* extra: ns */
	WEIR_LOOP_AGAIN, /* file: a connection of a listener; RECEIVE_ANY may tell of it again */
	WEIR_LOOP_CALL,  /* extra: the function's number; size bytes inline, both ways */
	WEIR_LOOP_OPS
};

/* In host memory. The GPU writes, the host reads once and checks. */
struct weir_loop_request {
	uint16_t op;   /* enum weir_loop_op */
	uint16_t next; /* the batch's next slot; WEIR_LOOP_NO_SLOT: none */
	int32_t file;  /* a handle of the loop, not a descriptor of the process */
	uint64_t offset;
	uint64_t address; /* device memory, for more than WEIR_LOOP_INLINE bytes */
	uint64_t size;
	uint64_t extra;
	uint64_t reserved[3];
};
WEIR_LOOP_ASSERT(sizeof(struct weir_loop_request) == 64, "layout");

/* A doorbell: the first slot of a batch, and the number of the ring, from 1 on. */
#define WEIR_LOOP_DOORBELL(slot, number) ((uint64_t)(uint32_t)(number) << 32 | (slot))

/* An answer: the slot's result (a count, a handle, or a negative errno), and its lap of the ring,
 * from 1 on. Slot WEIR_LOOP_NO_SLOT: the result is an enum weir_loop_close. */
#define WEIR_LOOP_ANSWER(slot, lap, result) \
	((uint64_t)(uint16_t)(lap) << 48 | (uint64_t)(uint16_t)(slot) << 32 | (uint32_t)(result))

/* Why the blocks leave. */
enum weir_loop_close {
	WEIR_LOOP_EVICTED = 1, /* higher-level clients have work, or the agent holds this one */
	WEIR_LOOP_BLOCKED = 2, /* all blocks wait for answers */
	WEIR_LOOP_ASKED = 4,   /* by the host */
	WEIR_LOOP_EXITED = 8,  /* by the program */
	WEIR_LOOP_READY = 16,  /* in reports: a block that left has callbacks to run */
};

/* In host memory. The last block to leave writes it, the serial last. Each launch has one of two.
 */
struct weir_loop_report {
	uint32_t reason;  /* enum weir_loop_close, several; 0: all blocks ended */
	uint32_t ended;   /* blocks without callbacks; they never run again */
	int32_t code;     /* of exit() */
	uint32_t answers; /* that were taken, of all launches */
	uint32_t serial;  /* of the launch */
	uint32_t polls;   /* reads of answers, of all launches; may go round */
	uint64_t ran;     /* ns in which callbacks could run, until the last block began to leave */
	uint32_t begun;   /* serial of the launch, as soon as callbacks can run */
	uint32_t reserved;
};
WEIR_LOOP_ASSERT(sizeof(struct weir_loop_report) == 40, "layout");

/* In device memory, one for each loop. What all blocks read often, what the block that reads
 * answers uses, and what blocks count in lie 128 bytes apart, so that they do not delay each other.
 */
struct weir_loop_device {
	/* Read in one access. */
	uint64_t
		next_poll; /* %globaltimer when answers may be read again; or somebody reads them */
	uint32_t close;    /* enum weir_loop_close, several */
	uint32_t reserved0[29];

	uint64_t next_words;  /* %globaltimer of a look at demand and hold */
	uint64_t last_answer; /* when one was taken, or the launch began */
	uint32_t answers;     /* that were taken */
	uint32_t polls;       /* reads of answers; statistics */
	uint32_t reserved1[26];

	uint32_t left; /* blocks of this launch that have left */
	uint32_t idle; /* blocks of this launch that wait */
	uint32_t ended;
	int32_t code;
	uint64_t began; /* %globaltimer when callbacks of this launch could run */
	uint32_t reserved2[26];

	uint32_t doorbells;
	uint32_t reserved3[31];
};
WEIR_LOOP_ASSERT(sizeof(struct weir_loop_device) == 512, "layout");

struct weir_loop_callback {
	uint64_t invoke;  /* address of a device function */
	uint64_t deliver; /* device address to which inline data goes; 0: none */
	uint8_t capture[WEIR_LOOP_CAPTURE];
};
WEIR_LOOP_ASSERT(sizeof(struct weir_loop_callback) == 128, "layout");

/* In device memory, one for each block: what it resumes from. */
struct weir_loop_block {
	uint32_t done; /* callbacks with an answer that the block has not seen */
	uint32_t used, ready, requests;
	uint32_t started, ended, last;
	uint32_t number; /* of run_each_block(): the body that it goes on with */
	int32_t results[WEIR_LOOP_CALLBACKS_MAX];
	struct weir_loop_callback callbacks[WEIR_LOOP_CALLBACKS_MAX];
};

/* The kernel's first parameter. */
struct weir_loop_args {
	struct weir_loop_device *device;
	struct weir_loop_block *blocks;
	struct weir_loop_request *requests; /* host memory, like all up to the report */
	uint64_t *doorbells;
	const uint64_t *answers;
	const uint64_t *values; /* of each slot: what does not fit into an answer */
	/* Of each slot: where in host memory the data of an answer is, if it is more than
	 * WEIR_LOOP_INLINE and at most WEIR_LOOP_PART bytes; 0: where it belongs already. The block
	 * writes 0 when it has copied them. */
	uint64_t *parts;
	uint8_t *data; /* WEIR_LOOP_INLINE bytes of each slot */
	struct weir_loop_report *report;
	const uint64_t *demand; /* leave if a bit of demand_mask is set there; NULL: never */
	uint64_t demand_mask;
	const uint32_t *hold; /* leave if it is not 0; NULL: never */
	uint32_t callbacks;   /* of a block */
	uint32_t ring;        /* places of each ring, a power of two */
	uint32_t serial;
	uint32_t poll_ns;      /* between two reads of answers, of all blocks together */
	uint32_t words_ns;     /* between two reads of demand and hold */
	uint32_t linger_ns;    /* all blocks wait for so long before they leave */
	uint32_t check_cycles; /* between two looks of a busy block */
	uint32_t reserved0;
};
WEIR_LOOP_ASSERT(sizeof(struct weir_loop_args) == 128, "parameter layout");

#ifdef __cplusplus
}
#endif
#endif
