// clang-format off
/* What an agent and the clients of its node share: messages on /run/weir/agent.sock, and the pages of
 * weir/pages.h. All is of fixed width, little endian, and versioned. Old libraries in running pods meet new agents,
 * so fields are added in reserved space and never moved, and unknown flags are ignored. A change that an
 * older party cannot ignore makes a new WEIR_PROTOCOL_VERSION (deploy/docs/upgrade.md).
 *
 * The handshake (SOCK_SEQPACKET, one message a packet):
 *
 *   client                                          agent
 *   HELLO: GPU, version, the bit it had before  ->
 *                                               <-  WELCOME: level, bit, file descriptors; or REFUSED: why
 *   CHANNELS: its channel group                 ->
 *   COMPILE: a kernel to be rewritten           ->
 *                                               <-  PROFILE: what is known of its launches; some, before COMPILED
 *                                               <-  COMPILED: the result, or why there is none
 *   LEARNED: the form that it runs in from now on ->
 *                                               <-  LEVEL: another level and its pages, at any time
 *   end of file: the client is gone                 end of file: the agent is gone
 *
 * On a connection of its own a process asks for its memory account:
 *
 *   MEMORY: which GPU                           ->
 *                                               <-  ACCOUNT: its slot, and two pages; or REFUSED
 *
 * and before it first calls the driver, if a GPU of the node has an MPS server for each level, for the server that
 * it joins:
 *
 *   PIPES: which GPU                            ->
 *                                               <-  PIPES_ANSWER: the server's socket; or none; or REFUSED
 *
 * Identity (pod, container, user) is never in a message: the agent asks the kernel.
 */
// clang-format on
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/channel-group.h"
#include "weir/pages.h"

#define WEIR_PROTOCOL_MAGIC   0x52494557u /* "WEIR" */
#define WEIR_PROTOCOL_VERSION 1u
#define WEIR_SOCKET_PATH      "/run/weir/agent.sock"
#define WEIR_MESSAGE_MAX      512u /* no message is longer */
#define WEIR_FDS_MAX          8u   /* no message carries more */

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
	WEIR_CHANNELS = 10,
	WEIR_PIPES = 11,
	WEIR_PIPES_ANSWER = 12,
	WEIR_STOPPED = 13,
	WEIR_MEMORY_WAITS = 14,
	WEIR_PROFILE = 15,
	WEIR_LEARNED = 16,
};

struct weir_header {
	uint32_t magic;
	uint16_t version; /* of the sender; the receiver reads what it knows */
	uint16_t type;    /* enum weir_message_type */
	uint32_t size;    /* of the whole message, this header included */
	uint32_t reserved;
};

enum weir_hello_flags {
	WEIR_HELLO_TAKES_BIT = 1u << 0,      /* reads weir_level.bit */
	WEIR_HELLO_TAKES_PIPES = 1u << 1,    /* reads PIPES_ANSWER */
	WEIR_HELLO_TAKES_PROFILES = 1u << 2, /* reads PROFILE */
	WEIR_HELLO_SAYS_WHOLE = 1u << 3,     /* sets weir_demand_page.whole */
	WEIR_HELLO_CONCURRENT = 1u << 4,     /* WEIR_STATUS_CONCURRENT, known at once */
};

struct weir_hello {
	struct weir_header header;
	uint8_t gpu[16]; /* CUuuid of the device */
	/* The bit that a client had with its former agent; WEIR_BIT_NONE: none. The new agent gives
	 * the same bit again if it is free. */
	uint8_t claimed_bit;
	uint8_t flags; /* enum weir_hello_flags */
	uint8_t reserved0[2];
	uint32_t context; /* number among the process's contexts */
	char library[32]; /* version of libweir, NUL-padded */
	uint8_t reserved[64];
};

/* Descriptors, in this order: control page (read and write), status page (read and write), then
 * those of struct weir_level. */
struct weir_welcome {
	struct weir_header header;
	uint8_t level;
	uint8_t bit; /* 0..62, or WEIR_BIT_SHARED, as always at level 0, which sets none */
	uint8_t reserved0[6];
	uint64_t client; /* the agent's number for this client, for logs */
	uint8_t reserved[64];
};

/* Descriptors: demand page of @level (read only; none when @level is 3), then the demand pages of
 * levels 0..@level-1 (read and write). The level may be the same as before: then the pages are new,
 * because another client has lost the right to write the former ones, or the agent has cleared the
 * client's bit and asks whether it has work. */
struct weir_level {
	struct weir_header header;
	uint8_t level;
	uint8_t bit; /* 1 + the client's bit from now on; 0: it keeps the one that it has */
	uint8_t reserved0[6];
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
	WEIR_REFUSED_LIMITED = 1u << 0, /* the container has a memory limit */
};

struct weir_refused {
	struct weir_header header;
	uint32_t reason; /* enum weir_refusal */
	uint32_t flags;  /* enum weir_refused_flags */
	char text[128];  /* one line for the log, NUL-padded */
};

/* Asks for a kernel in the forms that can leave. One descriptor: a memory file, sealed against
 * writing, growing and shrinking, that starts with a struct weir_compile_file. The agent answers
 * each request with one COMPILED, in any order. */
struct weir_compile {
	struct weir_header header;
	uint32_t id; /* chosen by the client, repeated in the answer */
	uint32_t reserved0;
	uint8_t reserved[64];
};

#define WEIR_COMPILE_MAGIC    0x4c504d43u /* "CMPL" */
#define WEIR_COMPILE_FILE_MAX (64u << 20)
#define WEIR_COMPILE_PENDING  8u    /* requests of one client that the agent queues */
#define WEIR_KERNEL_NAME_MAX  8192u /* with its NUL */

struct weir_compile_file {
	uint32_t magic, version;
	uint32_t sm;        /* 90: compute capability 9.0 */
	uint32_t forms;     /* bits 1 << enum weir_form (weir/transform.h) */
	uint64_t name;      /* offset of the kernel's name */
	uint64_t name_size; /* with the NUL */
	uint64_t image;     /* offset of PTX, or of fatbinary containers */
	uint64_t image_size;
	uint32_t registers; /* of a thread of the native kernel; 0: not known */
	uint32_t flags;     /* WEIR_COMPILE_…; older agents ignore them */
	uint8_t reserved[8];
};

/* A launch waits for the kernel. If the agent's cache has no object with all of `forms`, it makes
 * one with the form that leaves soonest alone, which takes a third of the time. */
#define WEIR_COMPILE_SOONEST (1u << 0)

enum weir_compile_status {
	WEIR_COMPILE_OK = 0,      /* one descriptor: an object (weir/object.h), read only */
	WEIR_COMPILE_REFUSED = 1, /* malformed, no PTX, no such kernel: do not ask again */
	WEIR_COMPILE_FAILED = 2,  /* the compiler failed or exceeded its limits: do not ask again */
	WEIR_COMPILE_BUSY = 3,    /* too many requests: ask later */
	WEIR_COMPILE_OFF = 4,     /* this agent has no compile service */
};

struct weir_compiled {
	struct weir_header header;
	uint32_t id;
	uint32_t status; /* enum weir_compile_status */
	char text[128];  /* one line for the log, NUL-padded; empty when OK */
	uint8_t reserved[64];
};

/* Profiles: in which form a kernel is to be launched, as an earlier process found out. The agent
 * keeps them by namespace (outside pods: user), kernel, and GPU model. A client reads and teaches
 * those of its own namespace only. It can only name kernels that it has: their digest is that of
 * name and image in a COMPILE.
 *
 * The launches that a profile is about. */
struct weir_profile_geometry {
	uint32_t grid[3], block[3];
	uint32_t shared;  /* bytes of dynamic shared memory */
	uint32_t sms;     /* multiprocessors of the GPU */
	uint32_t latency; /* us from a demand until the kernel has left, as tuned for */
	uint32_t reserved0;
};

enum weir_profile_flags {
	WEIR_PROFILE_AHEAD = 1u << 0, /* tickets are drawn early */
	WEIR_PROFILE_APART = 1u << 1, /* WEIR_TICKETS_APART (weir/tickets.h) */
};

struct weir_profile_choice {
	uint8_t form;  /* enum weir_form (weir/transform.h); native: the rest is 0 */
	uint8_t build; /* of the form */
	uint8_t flags; /* enum weir_profile_flags */
	uint8_t reserved0;
	uint32_t chunk;   /* blocks of a ticket; sliced: blocks along the longest axis */
	uint32_t workers; /* blocks that run at a time */
	uint32_t ratio;   /* time relative to the native one, in millionths */
};

/* What lower levels may leave to a program's work without making it slower (gates/need-trial.h).
 * Its geometry is one thread, its time that of a launch, and all choices are native. */
enum weir_profile_yields {
	WEIR_YIELDS_UNKNOWN,
	WEIR_YIELDS_PLACES, /* places of blocks that end; for kernels of many blocks a third of the
			     * SMs */
	WEIR_YIELDS_SMS,    /* SMs of its own; for these half of the SMs */
	WEIR_YIELDS_WHOLE,  /* the whole GPU */
};

#define WEIR_PROFILE_CHOICES 3

struct weir_profile {
	struct weir_profile_geometry geometry;
	uint64_t native;        /* ns */
	uint64_t eviction_cost; /* ns; 0: not known */
	uint32_t samples;       /* of the native kernel, that the time is from */
	uint32_t yields;        /* enum weir_profile_yields; of programs, not of kernels */
	/* While nobody waits; same-level clients do; higher-level clients do. */
	struct weir_profile_choice choices[WEIR_PROFILE_CHOICES];
};

#define WEIR_PROFILE_ENTRIES 4 /* of a message */
/* Of a kernel, in several messages. One that works on a matrix from its edge inwards has a geometry
 * for each step. */
#define WEIR_PROFILE_KERNEL 32

/* Before the COMPILED of a request, of a client with WEIR_HELLO_TAKES_PROFILES. At least one, so
 * that the client knows the kernel's digest. */
struct weir_profile_message {
	struct weir_header header;
	uint32_t id;        /* of the request */
	uint32_t n;         /* entries */
	uint8_t kernel[32]; /* SHA-256 */
	struct weir_profile entries[WEIR_PROFILE_ENTRIES];
	uint8_t reserved[8];
};

/* The client has settled a kernel by its own measurement. Only of kernels with a PROFILE, and of
 * the client's program, of which the control page tells (WEIR_YIELD_AUTO). */
struct weir_learned {
	struct weir_header header;
	uint8_t kernel[32]; /* as in its PROFILE; all 0: the program */
	struct weir_profile profile;
	uint8_t reserved[64];
};

/* All fields are in their range, and unused ones are 0. Says nothing about whether the kernel can
 * be launched so. */
bool weir_profile_is_sane(const struct weir_profile *profile);

/* The first message on a connection of its own, which ends with the answer: the account belongs to
 * the process, not to a context. An old agent does not answer. So the sender shuts its side down,
 * and reads to the end. */
struct weir_memory {
	struct weir_header header;
	uint8_t gpu[16]; /* CUuuid of the device */
	uint8_t reserved[64];
};

/* The first message on a connection of its own. An allocation waits for others to free memory of
 * the GPU, for as long as the connection is open. An agent that ends it ends the wait. */
struct weir_memory_waits {
	struct weir_header header;
	uint8_t gpu[16];
	uint64_t bytes; /* of the allocation */
	uint8_t reserved[64];
};

/* Descriptors: limit page (read only), account page (read and write). The process has the slot
 * until it is dead. */
struct weir_account {
	struct weir_header header;
	uint32_t slot; /* 0..WEIR_MEMORY_SLOTS-1 */
	uint32_t reserved0;
	uint8_t reserved[64];
};

/* The client had no work outstanding and has some now. Sent only while WEIR_CONTROL_TELL is set, at
 * most every 2 ms. */
struct weir_work {
	struct weir_header header;
	uint8_t reserved[16];
};

/* A compute channel group of the client's context, for the hardware's timeslices and holds. One
 * descriptor: the driver's control device, as libcuda has it open. The same group again: it has
 * other channels now. */
struct weir_channels {
	struct weir_header header;
	struct channel_group group; /* n_channels: at least 1 */
	uint8_t reserved[64];
};

/* The first message on a connection of its own. Which MPS server a process joins is the agent's
 * word, so no folder of pipes is mounted into containers. An old agent does not answer: the sender
 * shuts its side down, and reads to the end. */
struct weir_pipes {
	struct weir_header header;
	uint8_t gpu[16]; /* CUuuid of the device; zeros: the only one of this process */
	uint8_t reserved[64];
};

enum weir_pipes_status {
	WEIR_PIPES_NONE = 0,  /* no server: the process is time-sliced */
	WEIR_PIPES_OK = 1,    /* one descriptor */
	WEIR_PIPES_LATER = 2, /* another answer follows within WEIR_PIPES_WAIT_MS */
};
#define WEIR_PIPES_WAIT_MS 10000

/* The descriptor is a server's socket, opened with O_PATH. A folder's would not do: `..` in it
 * leads to the other servers, and to all of the node's files. A client that has
 * WEIR_HELLO_TAKES_PIPES gets this message without a question when its level changes. Its next
 * connection to a server then goes to the new one. */
struct weir_pipes_answer {
	struct weir_header header;
	uint32_t status; /* enum weir_pipes_status */
	uint32_t level;  /* of the server */
	uint8_t reserved[64];
};

/* To an MPS server, which has handed over its channel groups: the agent has stopped these. The
 * server lets them go on at @until, unless a later message says another time. */
struct weir_stopped {
	struct weir_header header;
	uint64_t until; /* CLOCK_MONOTONIC in ns; 0: they are not stopped any more */
	uint8_t reserved[64];
};

/* A folder beside the agent's socket, which exists while some GPU of the node has an MPS server for
 * each level. libcuda wants a folder with a socket `control`. So this one has a folder N for each
 * of some numbers of descriptors, and N/control is a link to /proc/self/fd/N. */
#define WEIR_PIPES_NAME    "mps-pipes"
#define WEIR_PIPES_FD      1000
#define WEIR_PIPES_NUMBERS 8

static_assert(sizeof(struct weir_header) == 16, "wire layout");
static_assert(sizeof(struct weir_hello) == 136, "wire layout");
static_assert(offsetof(struct weir_hello, claimed_bit) == 32, "wire layout");
static_assert(offsetof(struct weir_hello, flags) == 33, "wire layout");
static_assert(offsetof(struct weir_level, bit) == 17, "wire layout");
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
static_assert(sizeof(struct weir_memory_waits) == 104, "wire layout");
static_assert(sizeof(struct weir_work) == 32, "wire layout");
static_assert(sizeof(struct weir_channels) == 352, "wire layout");
static_assert(offsetof(struct weir_channels, group.channels) == 32, "wire layout");
static_assert(sizeof(struct weir_pipes) == 96, "wire layout");
static_assert(sizeof(struct weir_pipes_answer) == 88, "wire layout");
static_assert(sizeof(struct weir_stopped) == 88, "wire layout");
static_assert(sizeof(struct weir_profile) == 112, "wire layout");
static_assert(offsetof(struct weir_profile, choices) == 64, "wire layout");
static_assert(sizeof(struct weir_profile_message) == WEIR_MESSAGE_MAX, "wire layout");
static_assert(offsetof(struct weir_profile_message, entries) == 56, "wire layout");
static_assert(sizeof(struct weir_learned) == 224, "wire layout");

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
	struct weir_memory_waits memory_waits;
	struct weir_work work;
	struct weir_channels channels;
	struct weir_pipes pipes;
	struct weir_pipes_answer pipes_answer;
	struct weir_stopped stopped;
	struct weir_profile_message profile;
	struct weir_learned learned;
	uint8_t bytes[WEIR_MESSAGE_MAX];
};

enum weir_check {
	WEIR_CHECK_OK = 0,
	WEIR_CHECK_SHORT = 1,   /* fewer bytes than its header says or its type needs */
	WEIR_CHECK_LONG = 2,    /* more than WEIR_MESSAGE_MAX, or bytes after its end */
	WEIR_CHECK_MAGIC = 3,   /* not ours */
	WEIR_CHECK_VERSION = 4, /* version 0 */
	WEIR_CHECK_TYPE = 5,    /* unknown: ignore it */
	WEIR_CHECK_VALUE = 6,   /* a field out of its range */
	WEIR_CHECK_FDS = 7,     /* not the descriptors of its type */
};

/* Checks a packet of @size bytes that came with @fds descriptors, and copies it to @out. The rest
 * of @out is zero, so fields that an older sender does not know read 0. Every string in @out ends
 * with NUL. */
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
