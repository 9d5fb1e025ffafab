/* The contract between rewritten kernels and their launcher: the hidden parameter and the words in
 * device memory that it points to. Little endian, naturally aligned.
 *
 * The hidden parameter is one struct, `.param .align 8 .b8 name[sizeof]`, behind the kernel's own
 * parameters. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PREEMPT_ABI 12

/* Sliced: a launch covers a part of the grid and has grid dimensions of its own. */
struct weir_slice {
	uint32_t first[3]; /* added to %ctaid */
	uint32_t grid[3];  /* replaces %nctaid */
			   /* then addresses of variables, as behind struct weir_persistent */
};
static_assert(sizeof(struct weir_slice) == 24, "layout");

/* Persistent: the launch has @n workers, a grid of n x 1 x 1 blocks of the kernel's own block size.
 * Each worker draws tickets and runs the blocks of each ticket one after the other. A ticket stands
 * for `chunk` consecutive blocks of the grid, x fastest, or for blocks that are `across` apart.
 * Towards the end of the grid tickets have `fine` blocks, and at last one.
 *
 * The launcher picks words that no unfinished launch uses, and a serial: that of the words'
 * previous launch plus 1 (modulo 2^32). The launcher never writes the words. They are zero when
 * they are allocated, and each launch leaves them ready for the next.
 *
 * The launcher then launches the kernel. Behind it in the stream it launches continuations with the
 * same parameters, as many as it likes, with gates in front of them and any number of workers each.
 * The last continuation has demand and hold 0, so it runs to the end. The launch is finished when
 * `done == serial`. Only then may the next operation of the stream start. Memory written by the
 * kernel is visible behind the launch in its stream, as natively.
 *
 * A wait for `done` cannot replace the last continuation: streams share channels, so a wait must
 * not depend on work of another stream (bench-channels.c).
 *
 * No launch of a form may begin before the operation in front of it in the stream is finished, so
 * it has no programmatic dependence on that and records no programmatic event: forms contain no
 * griddepcontrol. Sliced launches, too.
 *
 * A launch that finds (int32_t)(done - serial) >= 0 is stale and touches nothing, because its words
 * may belong to a later launch. Other launches that share words must not overlap. */
struct weir_persistent {
	uint64_t words;  /* address of struct weir_words */
	uint64_t demand; /* address of a uint64_t: non-zero asks the kernel to leave; 0: never asked
			  */
	uint64_t hold;   /* address of a uint32_t with the same meaning, or 0 */
	uint32_t grid[3]; /* the program's grid */
	uint32_t blocks;  /* product of `grid`: 1 .. 2^31 - 1 */
	uint32_t chunk;   /* blocks per ticket: 1 .. blocks */
	uint32_t tickets; /* number of tickets, at most 2^30, or 2^29 with `room`; workers: at most
			     2^20 */
	uint32_t serial;  /* of the launch; not 0 */
	uint32_t period;  /* nanoseconds of %globaltimer between two reads of demand and hold */
	/* Address of a struct weir_report that the host can read without the driver, or 0. The last
	 * worker of each launch stores it once. From then on another launch may use the words. */
	uint64_t report;
	/* Resumable only: worker w saves its block at saves + w * save_stride, aligned to 256.
	 * Unused if the kernel has no safe points (weir/transform.h). All continuations have as
	 * many workers as the first launch, at most 65535. */
	uint64_t saves;
	uint64_t save_stride;
	uint32_t coarse; /* tickets of `chunk` blocks come first, then those of `fine`; 0: all have
			    `chunk` */
	uint32_t fine;
	uint32_t single; /* the first ticket of one block; `tickets`: there is none */
	/* 1: a worker draws its next ticket when the last block of a ticket begins, which hides the
	 * latency but delays leaving by up to one block. 0: when the last block ends. Always 0 in
	 * resumable. */
	uint32_t ahead;
	/* Distance between the blocks of one ticket (tickets of one block excepted), in the order
	 * of the grid; `step` is the distance along the axes. 1 and {1, 0, 0}: consecutive blocks.
	 * Otherwise this many tickets begin at consecutive blocks, so blocks that run together lie
	 * together as they do natively. `coarse` and `single` are then multiples of it, and `step`
	 * is along the last axis longer than 1. At most the number of workers, because blocks may
	 * wait for earlier blocks. */
	uint32_t across;
	uint32_t step[3];
	/* 1: the first launch with this serial, which need not read the words. 0: it may be a
	 * continuation. */
	uint32_t fresh;
	/* Resumable: a block that finds the launch closed runs to the end of its ticket if that is
	 * expected within so many cycles of %clock (weir/drain.h). Otherwise its worker saves it.
	 * 0: it is always saved. */
	uint32_t drain;
	/* Launches with the same number have the same kernel and geometry, so the times of their
	 * tickets can be compared. */
	uint32_t kind;
	/* Resumable: about so many threads at most are in functions of the driver at a time: in
	 * malloc and free, and in vprintf. The others wait where they can leave. 0: any number. */
	uint16_t calls;
	uint16_t prints;
	/* Address of a uint32_t that the host writes: the number of SMs that the kernel must leave
	 * to others. 0: none, ever; also where `demand` is 0. Otherwise `across` is 1, because
	 * blocks may wait for earlier blocks, and there are at most 65535 workers.
	 * Then a uint64_t stands in front of `demand`. It is not 0 while `demand` is not, or SMs
	 * are newly to be left: while it is 0 nothing else is read. */
	uint64_t room;
	/* The quota until the first poll, as in weir_words; 0: all SMs. */
	uint32_t quota;
	/* Persistent: so many workers have a ticket without drawing: worker w has `resume + w`. 0,
	 * or the number of workers, without the poller. A ticket that needs no drawing is run
	 * whatever the quota is. */
	uint32_t dealt;
	/* Persistent: 1: the last worker draws no ticket while there are any and nobody asks for
	 * SMs, and polls instead. Workers poll only between two blocks. Where all of them begin
	 * their blocks at the same time, nobody polls until these end, and most have the next
	 * ticket when one does. 0 without `demand`. */
	uint32_t poller;
	/* Resumable: so many threads at most, rounded up to a block, belong to blocks that call
	 * malloc at a time, as long as they do so. The others wait where they can leave. 0: any
	 * number. A block that has looked `patience` times WEIR_PATIENCE_LOOKS times whether it may
	 * calls, too. 0: it never does. */
	uint16_t allocating;
	uint16_t patience;
	/* Resumable: each warp looks whether it is to leave when %clock passes a multiple of
	 * `look`, a power of two; 0: at every loop head. One warp of a block reads device memory.
	 * It does so `lead` cycles before, less than half of `look`, so that the others find what
	 * it has read.
	 */
	uint32_t look;
	uint32_t lead;
	/* In a module of its own (weir/object.h) the addresses of the kernel's global variables
	 * follow in the same parameter: uint64_t each, in the order of the object's symbols. */
};
#define WEIR_PATIENCE_LOOKS 4096u
/* What libweir passes: 4 us on an H100, and the time to read a word that another SM wrote. */
#define WEIR_LOOK 8192u
#define WEIR_LEAD 1024u
static_assert(sizeof(struct weir_persistent) == 160, "layout");
static_assert(offsetof(struct weir_persistent, serial) == 48, "layout");
static_assert(offsetof(struct weir_persistent, saves) == 64, "layout");
static_assert(offsetof(struct weir_persistent, room) == 128, "layout");

#define WEIR_TICKET_CLOSED 0x80000000u
#define WEIR_TICKET_ASKED  0x40000000u /* see `asked`; in that word: it is ready */

/* Quota: workers on the last n SMs leave. Before it draws a ticket, a worker with %smid + n >=
 * %nsmid leaves instead, as if there was none, and counts itself. The last worker stays, so a
 * launch never ends before its tickets are drawn or it is closed.
 *
 * Resumable workers look at the quota before each draw. Persistent ones do so only in a launch that
 * was ever asked to leave some SMs: in others a look would cost as much as the draw.
 *
 * The winner of a poll reads `room` as well, if need be. If fewer SMs are to be left than before,
 * and workers have left, it closes the launch: the next continuation brings them all back, and
 * nothing has to be queued beside the chain. A closed launch keeps its quota for the continuation.
 */
#define WEIR_QUOTA_GONE      0x0000ffffu /* workers of this launch that left by it */
#define WEIR_QUOTA_SHIFT     16
#define WEIR_QUOTA_SMS_MAX   0xfffu      /* n, above the shift */
#define WEIR_QUOTA_RETURNING 0x40000000u /* the launch was closed to bring them back */
#define WEIR_QUOTA_KNOWN     0x80000000u /* n counts, even if it is 0; without: the parameter's */

/* What a launcher passes as `quota` when @sms SMs are to be left. */
static inline uint32_t weir_quota(uint32_t sms)
{
	uint32_t n = sms < WEIR_QUOTA_SMS_MAX ? sms : WEIR_QUOTA_SMS_MAX;

	return n ? WEIR_QUOTA_KNOWN | n << WEIR_QUOTA_SHIFT : 0;
}

/* In device memory, two sectors. Kernels write the words; the launcher may read them.
 *
 * - next_poll: when this time has come, a thread that draws a ticket or reaches a safe point may
 * move it by a period with compare-and-swap. The winner reads demand and hold.
 *
 * - next_quota: the same for threads that draw a ticket in resumable, if there is `room`.
 *
 * - asked: persistent only. The first thread that finds SMs to be left sets WEIR_TICKET_ASKED in
 * `ticket`, and then writes what was there before, with the same bit, here. All later draws from
 * `ticket` are void. Whoever makes one looks at the quota, and draws from this word if it stays. To
 * close the launch is to close both words; `restart` is then from this one. 0: not ready.
 *
 * - ticket: the next ticket; atomic addition of 1 draws it. In persistent, draws count from `dealt`
 * on. A thread that sees
 * the demand sets the top bit. The first to do so stores the next ticket in `restart`. All later
 * draws are larger than any ticket and so refused: `restart` is the smallest refused ticket.
 *
 * - left: number of workers that have left; in its upper half, those that saved a block. The last
 * one prepares the words for the next launch. It sets `done` if all tickets were drawn and no block
 * is saved.
 *
 * - resume: in persistent, the first ticket of the next launch. In resumable, the serial of a
 * launch with saved blocks: a worker of a continuation reads its save only if this is its serial.
 * Every worker has then written whether it saved a block, so saves need no initialisation.
 *
 * - quota: see above. Atomic operations only, but for the last worker.
 *
 * - partial, returns: launches from which workers left by a quota, and those of them that were
 * closed to bring them back (and are counted in `evictions`, too), ever; by the last worker.
 *
 * - saved, drained: only resumable kernels with safe points use them. drained: blocks whose worker
 * saw at a safe point that the launch was closed, and ran on to the end of its ticket.
 */
struct weir_words {
	uint64_t next_poll; /* %globaltimer */
	uint32_t done;      /* serial of the last launch that finished */
	uint32_t evictions; /* launches that left before the end, ever; written by the last worker
			       to leave */
	uint32_t ticket;
	uint32_t restart;
	uint32_t left;
	uint32_t resume; /* see above; or 0 */
	uint32_t asked;
	uint32_t quota;
	uint32_t saved, drained; /* blocks, ever (modulo 2^32) */
	uint32_t partial, returns;
	uint64_t next_quota; /* %globaltimer */
};
static_assert(sizeof(struct weir_words) == 64, "two sectors: align to 32");
static_assert(offsetof(struct weir_words, saved) == 40, "layout");
static_assert(offsetof(struct weir_words, ticket) == 16, "layout");
static_assert(offsetof(struct weir_words, quota) == 36, "layout");
static_assert(offsetof(struct weir_words, partial) == 48, "layout");
static_assert(offsetof(struct weir_words, asked) == 32, "layout");

/* What the last worker of a launch tells the host. */
struct weir_report {
	_Alignas(16) uint64_t launch; /* evictions << 32 | done */
	uint64_t blocks;  /* drained << 32 | saved; resumable kernels with safe points only */
	uint64_t partial; /* returns << 32 | partial; stored when they change */
	uint64_t reserved;
};
static_assert(sizeof(struct weir_report) == 32, "layout");
