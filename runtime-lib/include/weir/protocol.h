/* What an agent and the clients of its node share: messages on /run/weir/agent.sock and five kinds
 * of pages. Fixed widths, little endian, versioned; old libraries in running pods meet new agents,
 * so fields are added in reserved space, never moved, and unknown flags are ignored. What an older
 * party cannot ignore makes a new WEIR_PROTOCOL_VERSION (deploy/docs/upgrade.md).
 *
 * The hand-shake (SOCK_SEQPACKET, one message a packet):
 *
 *   client                                       agent
 *   HELLO: GPU, versions, what it had before ->
 *                                             <- WELCOME: level, bit, file descriptors; or REFUSED:
 * why
 *   COMPILE: a kernel to be rewritten       ->
 *                                             <- COMPILED: the result, or why there is none
 *                                             <- LEVEL: another level and the pages for it, at any
 * time end of file: the client is gone              end of file: the agent is gone
 *
 * On a connection of its own, of which nothing else is asked, a process learns where its memory is
 * counted:
 *
 *   MEMORY: which GPU                        ->
 *                                             <- ACCOUNT: its slot, and two pages; or REFUSED
 *
 * Identity (pod, container, user) is never in a message: the agent asks the kernel.
 *
 * Memory. A container has an account and a limit on each GPU. A process writes what it has into its
 * slot of the account *before* the driver is asked for it, under the account's lock, and only if
 * the sum of all slots stays within the limit; so the agent is not on that path, and its death
 * changes nothing. The limit page is the agent's alone. A slot is freed by the agent when its
 * process is dead, and a lock that a dead process held, too. What one container can do to its
 * account harms nobody else.
 *
 * Demand. A GPU has one demand page for each level that can be preempted, 0..2. The word of level q
 * is non-zero while a client *above* q has work outstanding; a client of level p sets its bit in
 * the words of all levels below p, and its own gates wait for the one word of level p. So holding
 * page q writable is exactly the right to preempt level q, and a gate is one wait, not three.
 * Measured on an H200: an open gate of one wait costs 2.5 us of GPU time, each further wait in
 * it 1.0 us more.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PROTOCOL_MAGIC   0x52494557u /* "WEIR" */
#define WEIR_PROTOCOL_VERSION 1u
#define WEIR_SOCKET_PATH      "/run/weir/agent.sock"
#define WEIR_PAGE_SIZE        4096u
#define WEIR_LEVELS           4u                 /* 0 lowest .. 3 highest */
#define WEIR_DEMAND_LEVELS    (WEIR_LEVELS - 1u) /* levels that somebody can be above of */
#define WEIR_MESSAGE_MAX      512u               /* no message is longer */
#define WEIR_FDS_MAX          8u                 /* no message carries more */

/* Clients have bits 0..62 of the demand words for themselves. Beyond those the agent gives out
 * WEIR_BIT_SHARED: such a client sets no bit, and the agent keeps bit 63 for all of them from their
 * status pages. */
#define WEIR_BITS_OWN   63u
#define WEIR_BIT_SHARED 63u
#define WEIR_BIT_NONE   0xffu

enum weir_message_type {
	WEIR_HELLO = 1,
	WEIR_WELCOME = 2,
	WEIR_LEVEL = 3,
	WEIR_REFUSED = 4,
	WEIR_COMPILE = 5,
	WEIR_COMPILED = 6,
	WEIR_MEMORY = 7,
	WEIR_ACCOUNT = 8,
	WEIR_WORK = 9,
};

struct weir_header {
	uint32_t magic;
	uint16_t version; /* of the sender; the receiver reads what it knows */
	uint16_t type;    /* enum weir_message_type */
	uint32_t size;    /* of the whole message, this header included */
	uint32_t reserved;
};

struct weir_hello {
	struct weir_header header;
	uint8_t gpu[16]; /* CUuuid of the device */
	/* A client that lost its agent says what it had; WEIR_BIT_NONE: nothing. The new agent
	 * gives the same bit again where it is free, whatever level it decides on. */
	uint8_t claimed_bit;
	uint8_t reserved0[3];
	uint32_t context; /* which of the process's contexts: 0, 1, … */
	char library[32]; /* version of libweir, NUL-padded */
	uint8_t reserved[64];
};

/* Descriptors, in this order: control page (read and write), status page (read and write), then
 * those of struct weir_level. */
struct weir_welcome {
	struct weir_header header;
	uint8_t level;
	uint8_t bit; /* 0..62, or WEIR_BIT_SHARED */
	uint8_t reserved0[6];
	uint64_t client; /* the agent's number for this client, for logs */
	uint8_t reserved[64];
};

/* Descriptors: demand page of @level (read only; none when @level is 3), then the demand pages of
 * levels 0..@level-1 (read and write). */
struct weir_level {
	struct weir_header header;
	uint8_t level;
	uint8_t reserved0[7];
	uint8_t reserved[64];
};

enum weir_refusal {
	WEIR_REFUSED_VERSION = 1,
	WEIR_REFUSED_GPU = 2,      /* no such GPU here, or not this container's */
	WEIR_REFUSED_LIMIT = 3,    /* too many clients */
	WEIR_REFUSED_MESSAGE = 4,  /* malformed */
	WEIR_REFUSED_INTERNAL = 5, /* the agent's own trouble (memory, disk); try again later */
};

enum weir_refused_flags {
	WEIR_REFUSED_LIMITED = 1u << 0, /* its container has a limit of memory */
};

struct weir_refused {
	struct weir_header header;
	uint32_t reason; /* enum weir_refusal */
	uint32_t flags;  /* enum weir_refused_flags */
	char text[128];  /* one line for the log, NUL-padded */
};

/* Asks for a kernel in the forms that can leave. One descriptor: a memory file sealed against
 * writing, growing and shrinking, with a struct weir_compile_file at its start. The agent answers
 * each with one COMPILED, in any order. */
struct weir_compile {
	struct weir_header header;
	uint32_t id; /* the client's own, given back */
	uint32_t reserved0;
	uint8_t reserved[64];
};

#define WEIR_COMPILE_MAGIC    0x4c504d43u /* "CMPL" */
#define WEIR_COMPILE_FILE_MAX (64u << 20)
#define WEIR_COMPILE_PENDING  8u    /* requests of one client that the agent keeps waiting */
#define WEIR_KERNEL_NAME_MAX  8192u /* with its NUL */

struct weir_compile_file {
	uint32_t magic, version;
	uint32_t sm;        /* 90: compute capability 9.0 */
	uint32_t forms;     /* bits 1 << enum weir_form (weir/transform.h) */
	uint64_t name;      /* offset of the kernel's name, which ends with NUL */
	uint64_t name_size; /* with the NUL */
	uint64_t image;     /* offset of PTX, or of fatbinary containers */
	uint64_t image_size;
	uint32_t registers; /* of a thread of the kernel as it is; 0: not known */
	uint8_t reserved[12];
};

enum weir_compile_status {
	WEIR_COMPILE_OK = 0,      /* one descriptor: an object (weir/object.h), read only */
	WEIR_COMPILE_REFUSED = 1, /* malformed, no PTX in it, no such kernel: never ask again */
	WEIR_COMPILE_FAILED = 2,  /* the compiler did not manage within its limits: nor then */
	WEIR_COMPILE_BUSY = 3,    /* too many requests: later */
	WEIR_COMPILE_OFF = 4,     /* this agent has no compile service */
};

struct weir_compiled {
	struct weir_header header;
	uint32_t id;
	uint32_t status; /* enum weir_compile_status */
	char text[128];  /* one line for the log, NUL-padded; empty when OK */
	uint8_t reserved[64];
};

/* Sent first on a connection of its own, which ends with the answer: the account is the process's,
 * not a context's. An old agent leaves it unanswered, so the asker shuts its side down behind it,
 * and reads to the end. */
struct weir_memory {
	struct weir_header header;
	uint8_t gpu[16]; /* CUuuid of the device */
	uint8_t reserved[64];
};

/* Descriptors: limit page (read only), account page (read and write). The slot is the process's
 * until it is dead. */
struct weir_account {
	struct weir_header header;
	uint32_t slot; /* 0..WEIR_MEMORY_SLOTS-1 */
	uint32_t reserved0;
	uint8_t reserved[64];
};

/* The client had no work outstanding and has some now. Of who has WEIR_CONTROL_TELL only, and not
 * each time: the agent looks by itself soon. */
struct weir_work {
	struct weir_header header;
	uint8_t reserved[16];
};

#define WEIR_MEMORY_SLOTS 252u
/* Memory is reserved in chunks of this size, as drivers give it out: an allocation of half a chunk
 * or more takes whole ones, smaller ones of a process share some. */
#define WEIR_MEMORY_CHUNK (2u << 20)
/* Beside the socket while some container of the node has a limit: who finds it, and no agent, is
 * not to allocate. */
#define WEIR_LIMITED_NAME "memory-limited"
/* In the environment of a container that may have a limit, other than 0: who finds no agent that
 * says is not to allocate. */
#define WEIR_LIMITED_VARIABLE "WEIR_MEMORY_LIMITED"

/* Of a container on a GPU. Survives the agent: the last limit known holds. */
struct weir_limit_page {
	uint32_t magic, version;
	_Atomic uint64_t limit; /* bytes, 0: none */
	uint8_t reserved[WEIR_PAGE_SIZE - 16];
};

/* Of a container on a GPU: written by its processes, each its own slot. Survives the agent. */
struct weir_account_page {
	uint32_t magic, version;
	_Atomic uint32_t lock; /* slot + 1 of who holds it */
	uint8_t reserved[64 - 12];
	struct {
		_Atomic uint64_t reserved; /* bytes, a multiple of the chunk */
		_Atomic uint32_t pid;      /* by the agent, in its namespace; 0: free */
		uint32_t reserved0;
	} slots[WEIR_MEMORY_SLOTS];
};

/* File `demand-q` of a GPU. Survives the agent. */
struct weir_demand_page {
	_Atomic uint64_t
		word; /* bit b: the client of bit b, which is above level q, has work outstanding */
	uint8_t reserved[WEIR_PAGE_SIZE - 8];
};

enum weir_control_flags {
	WEIR_CONTROL_HOLDABLE = 1u << 0, /* the policy uses hold words: gates wait for it, too */
	/* A hold is to be expected: others of its level have work, whether or not it has some
	 * itself. Where they run at the same time it is held only if it is in their way, and then
	 * this is set. */
	WEIR_CONTROL_CONTENDED = 1u << 1,
	/* Others of its level are not to wait until kernels of its end: a form that leaves soon is
	 * worth its price. */
	WEIR_CONTROL_URGENT = 1u << 2,
	/* Work that comes when there was none is to be told (struct weir_work). */
	WEIR_CONTROL_TELL = 1u << 3,
	/* Clients of its level run at the same time, those with short launches first: below MPS
	 * each launch has a priority by its length; where there are other levels, by whether its
	 * client was the first of its equals to have work. */
	WEIR_CONTROL_AHEAD = 1u << 4,
};

/* The agent writes, the client reads; but a client that lost its agent clears its own hold word. */
struct weir_control_page {
	uint32_t magic;
	uint32_t version;
	_Atomic uint32_t level;        /* for display; LEVEL messages carry the pages */
	_Atomic uint32_t flags;        /* enum weir_control_flags */
	_Atomic uint32_t above;        /* how many clients of this GPU are above this one */
	_Atomic uint32_t epoch;        /* counts changes of this page */
	_Atomic uint64_t memory_limit; /* bytes, 0: none; for display (struct weir_limit_page) */
	_Atomic uint32_t share;        /* 1..100, hundredths of the GPU */
	/* How many clients of this GPU run at the same time (WEIR_STATUS_CONCURRENT) below others:
	 * who comes above waits for what all of them have begun. 0: not known. */
	_Atomic uint32_t beside;
	/* CLOCK_MONOTONIC in ns: a hold that lasts longer has been forgotten; the client clears it.
	 */
	_Atomic uint64_t hold_until;
	_Atomic uint64_t latency_slo; /* ns from launch to start that the pod wants; 0: none */
	_Atomic uint32_t below;       /* how many clients of this GPU are below this one */
	/* ns: kernels no longer than this need not leave for those above, whose work takes many
	 * times as long. 0: not known. */
	_Atomic uint32_t max_blocking_time;
	_Atomic uint32_t hold; /* non-zero: not your turn. A line of its own: the GPU waits on it */
	uint8_t reserved[WEIR_PAGE_SIZE - 68];
};

#define WEIR_STATUS_FORMS 8u /* forms that there may ever be */

enum weir_status_flags {
	/* Its kernels run at the same time as those of others who say so (MPS): equals need not
	 * take turns. */
	WEIR_STATUS_CONCURRENT = 1u << 0,
	/* All that it launched of late can have priorities by length (WEIR_CONTROL_AHEAD); what has
	 * none, as graphs, or the program's own, would be behind long launches, or ahead of short
	 * ones. */
	WEIR_STATUS_ORDERED = 1u << 1,
	/* All that is outstanding is done but for its way past gates, behind which nothing is left
	 * to do: to hold it would only keep the program from hearing of it. As of some moment ago.
	 */
	WEIR_STATUS_DONE = 1u << 2,
};

/* The client writes, the agent reads and trusts nothing of it beyond showing it. Times in
 * nanoseconds; counters only grow. */
struct weir_status_page {
	uint32_t magic;
	uint32_t version;
	_Atomic uint64_t launches;     /* kernels and graphs launched */
	_Atomic uint64_t outstanding;  /* of these not known to be finished */
	_Atomic uint64_t gpu_time;     /* predicted time of all that were launched */
	_Atomic uint64_t remaining;    /* of those outstanding, less what they have run */
	_Atomic uint64_t gates;        /* put into streams */
	_Atomic uint64_t gates_closed; /* of these closed at that moment */
	_Atomic uint64_t waits;        /* times that work began to be held */
	_Atomic uint64_t wait_time;    /* time with work outstanding and held */
	_Atomic uint64_t evictions;    /* running kernels that left early */
	_Atomic uint32_t level;        /* the level at which the client acts now */
	_Atomic uint32_t flags;        /* enum weir_status_flags; of an older client none */
	/* By form (enum weir_form of weir/transform.h), the native one left at 0. */
	_Atomic uint64_t form_launches[WEIR_STATUS_FORMS];
	_Atomic uint64_t form_evictions[WEIR_STATUS_FORMS];
	uint8_t reserved1[256 - 216];
	/* GPU time of what is known to be finished, as predicted at its launch: what is not
	 * predicted counts nothing. 0: this library does not say. */
	_Atomic uint64_t executed;
	/* Times that work began after a launch into a stream in which nothing was outstanding, and
	 * of these later than latency_slo after the launch: as far as its end tells, less the time
	 * that was predicted; and where none was, by the gate before it alone. Launches of these
	 * that wait behind the same closed gates are one. */
	_Atomic uint64_t starts;
	_Atomic uint64_t starts_late;
	/* Measured launches that had been predicted, and the sum of their errors relative to what
	 * was measured, in millionths, each 10 at most. */
	_Atomic uint64_t predictions;
	_Atomic uint64_t prediction_error;
	/* GPU time that it costs to evict what runs at some moment, expected; 0: not known. */
	_Atomic uint64_t eviction_cost;
	_Atomic uint64_t demand_time; /* with work outstanding, as of some moment ago */
	/* Times that demand was shown before a launch that a copy to the GPU told of; of these for
	 * nothing; and the time until it came, or until that was known. */
	_Atomic uint64_t speculative;
	_Atomic uint64_t speculative_misses;
	_Atomic uint64_t speculative_time;
	/* Kernels launched within the last second or so whose form is not decided: it is being
	 * made, or compared with the native one. */
	_Atomic uint64_t comparing;
	/* ns from when work comes to the idle client until it is done, the shortest of late; 0: not
	 * known, or this library does not say. */
	_Atomic uint64_t busy_period;
	uint8_t reserved[WEIR_PAGE_SIZE - 352];
};

static_assert(sizeof(struct weir_header) == 16, "wire layout");
static_assert(sizeof(struct weir_hello) == 136, "wire layout");
static_assert(offsetof(struct weir_hello, claimed_bit) == 32, "wire layout");
static_assert(offsetof(struct weir_hello, library) == 40, "wire layout");
static_assert(sizeof(struct weir_welcome) == 96, "wire layout");
static_assert(offsetof(struct weir_welcome, client) == 24, "wire layout");
static_assert(sizeof(struct weir_level) == 88, "wire layout");
static_assert(sizeof(struct weir_refused) == 152, "wire layout");
static_assert(sizeof(struct weir_compile) == 88, "wire layout");
static_assert(sizeof(struct weir_compile_file) == 64, "file layout");
static_assert(sizeof(struct weir_compiled) == 216, "wire layout");
static_assert(sizeof(struct weir_memory) == 96, "wire layout");
static_assert(sizeof(struct weir_account) == 88, "wire layout");
static_assert(sizeof(struct weir_work) == 32, "wire layout");
static_assert(sizeof(struct weir_limit_page) == WEIR_PAGE_SIZE, "one page");
static_assert(sizeof(struct weir_account_page) == WEIR_PAGE_SIZE, "one page");
static_assert(offsetof(struct weir_account_page, slots) == 64, "page layout");
static_assert(sizeof(struct weir_demand_page) == WEIR_PAGE_SIZE, "one page");
static_assert(sizeof(struct weir_control_page) == WEIR_PAGE_SIZE, "one page");
static_assert(offsetof(struct weir_control_page, memory_limit) == 24, "page layout");
static_assert(offsetof(struct weir_control_page, hold) == 64, "a cache line of its own");
static_assert(sizeof(struct weir_status_page) == WEIR_PAGE_SIZE, "one page");
static_assert(offsetof(struct weir_status_page, level) == 80, "page layout");
static_assert(offsetof(struct weir_status_page, flags) == 84, "page layout");
static_assert(offsetof(struct weir_status_page, form_launches) == 88, "page layout");
static_assert(offsetof(struct weir_control_page, beside) == 36, "page layout");
static_assert(offsetof(struct weir_control_page, hold_until) == 40, "page layout");
static_assert(offsetof(struct weir_control_page, below) == 56, "page layout");
static_assert(offsetof(struct weir_control_page, max_blocking_time) == 60, "page layout");
static_assert(offsetof(struct weir_status_page, executed) == 256, "page layout");
static_assert(offsetof(struct weir_status_page, predictions) == 280, "page layout");
static_assert(offsetof(struct weir_status_page, demand_time) == 304, "page layout");
static_assert(offsetof(struct weir_status_page, speculative) == 312, "page layout");
static_assert(offsetof(struct weir_status_page, comparing) == 336, "page layout");
static_assert(offsetof(struct weir_status_page, busy_period) == 344, "page layout");

/* One message as it came from a socket, checked. */
union weir_message {
	struct weir_header header;
	struct weir_hello hello;
	struct weir_welcome welcome;
	struct weir_level level;
	struct weir_refused refused;
	struct weir_compile compile;
	struct weir_compiled compiled;
	struct weir_memory memory;
	struct weir_account account;
	struct weir_work work;
	uint8_t bytes[WEIR_MESSAGE_MAX];
};

enum weir_check {
	WEIR_CHECK_OK = 0,
	WEIR_CHECK_SHORT = 1,   /* fewer bytes than its header says, or than its type needs */
	WEIR_CHECK_LONG = 2,    /* more than WEIR_MESSAGE_MAX, or bytes behind its end */
	WEIR_CHECK_MAGIC = 3,   /* not ours */
	WEIR_CHECK_VERSION = 4, /* version 0 */
	WEIR_CHECK_TYPE = 5,    /* unknown: ignore it */
	WEIR_CHECK_VALUE = 6,   /* a field out of its range */
	WEIR_CHECK_FDS = 7,     /* not the descriptors that belong to it */
};

/* Checks a packet of @size bytes that came with @fds descriptors, and copies it to @out
 * (zero-filled behind its end, so that fields which an older sender does not know read 0). Every
 * string in @out ends with NUL. */
enum weir_check weir_message_check(union weir_message *out, const void *packet, size_t size,
				   size_t fds);
const char *weir_check_text(enum weir_check check);

/* Fills in the header of a message of @type and @size. */
void weir_header_init(struct weir_header *header, enum weir_message_type type, size_t size);

/* Sends one message with its descriptors, which stay the caller's. 0, or a negative errno; -EAGAIN:
 * the socket is full. Never raises SIGPIPE. */
int weir_message_send(int socket, const void *message, size_t size, const int *fds, size_t n_fds);

/* Receives one message. 0 and @out; a positive enum weir_check (nothing is kept; the descriptors
 * are closed); or a negative errno: -EAGAIN: nothing there, -EPIPE: end of file. @fds: WEIR_FDS_MAX
 * entries, all close-on-exec, the caller's on success. */
int weir_message_receive(int socket, union weir_message *out, int *fds, size_t *n_fds);
