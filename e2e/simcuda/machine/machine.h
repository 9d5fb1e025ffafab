/* The simulated hardware that all processes of a machine share: SM slots, the queue of kernels for
 * them, and the memory of each process. It is a file in $WEIR_SIM_DIR (default /dev/shm/weir-sim)
 * that every process maps. Containers that mount the same folder share the machine.
 *
 * Each GPU has `sms` slots; a running block occupies one. Each GPU has one queue of kernels in the
 * order in which they became ready. Blocks of the oldest kernel start first; a later kernel's
 * blocks start only when no older kernel has unstarted blocks. The hardware's block scheduler does
 * the same at equal priority.
 *
 * A process owns an entry of the process table while it holds a file lock, which the Linux kernel
 * drops when the process dies. A waiting process checks at least every 20 ms whether the others are
 * alive, and frees what dead ones held. Everything in the file belongs to one entry and there are
 * no sums, so freeing is forgetting the entry.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_GPUS      8u
#define MACHINE_SMS       256u
#define MACHINE_PROCESSES 512u
#define MACHINE_KERNELS   4096u /* in the queue of a GPU */
#define MACHINE_GPU_NAME  "Weir Simulated GPU"
#define MACHINE_FIRST_BUS 0x10u /* GPU 0 is 0000:10:00.0 */

struct machine_config {
	uint32_t gpus;
	uint32_t sms;      /* slots of a GPU */
	uint32_t block_us; /* a block occupies its slot at least this long */
	uint64_t memory;   /* bytes of a GPU */
	uint32_t numa; /* NUMA nodes, the first ones have the first GPUs; 0: NVML reports none */
};

enum machine_role {
	MACHINE_COMPUTE = 1,  /* a process with CUDA */
	MACHINE_OBSERVER = 2, /* NVML: holds no slots and no memory */
};

struct shared;

struct machine {
	struct machine_config config;
	struct shared *shared;
	char folder[256];
	int lock_fd; /* holds the lock that says we are alive */
	int pid_fd;  /* carries the lock that tells others our pid in their namespace */
	uint32_t self;
};

enum machine_outcome {
	MACHINE_OK = 0,
	MACHINE_BUSY = 1, /* nothing can start now: wait with machine_wait() */
	MACHINE_FULL = 2, /* no place in the table, the queue or the memory */
};

/* Maps the machine and creates it if no live process uses it. The first process takes the settings
 * from the environment, else from the file `config`, else the defaults. MACHINE_FULL: too many
 * processes; else a negative errno. */
int machine_open(struct machine *m, enum machine_role role);
void machine_close(struct machine *m);
/* In a child of fork(): closes the parent's locks. */
void machine_forget(struct machine *m);

/* Reads "512M", "2Gi", "1073741824". False: not a size. */
bool machine_parse_size(const char *text, uint64_t *out);

/* Puts a kernel of @blocks blocks at the end of the queue of @gpu. @cookie comes back from
 * machine_start(). MACHINE_FULL: try again when another kernel is finished. */
int machine_push(struct machine *m, uint32_t gpu, uint64_t cookie, uint64_t blocks,
		 uint64_t *ticket);
/* Removes the unstarted blocks of a kernel and returns their number. */
uint64_t machine_cancel(struct machine *m, uint32_t gpu, uint64_t ticket);
/* Starts one block if the oldest kernel is ours and a slot is free. MACHINE_BUSY: @sequence is for
 * machine_wait(). */
int machine_start(struct machine *m, uint32_t gpu, uint64_t *cookie, uint32_t *slot,
		  uint32_t *sequence);
/* A block on @slot is done. Starts another one there if the oldest kernel is ours; else the slot is
 * free (MACHINE_BUSY). */
int machine_next(struct machine *m, uint32_t gpu, uint32_t slot, uint64_t *cookie);
/* Sleeps until the queue may have moved on since @sequence, or a bounded time; then checks for dead
 * processes. */
void machine_wait(struct machine *m, uint32_t gpu, uint32_t sequence);
/* Ends everybody's machine_wait(). */
void machine_wake(struct machine *m, uint32_t gpu);

/* Charges memory of @gpu to this process. MACHINE_FULL: too little is left. */
int machine_charge(struct machine *m, uint32_t gpu, uint64_t bytes);
void machine_refund(struct machine *m, uint32_t gpu, uint64_t bytes);
uint64_t machine_used(struct machine *m, uint32_t gpu);

/* A live process that has touched @gpu. */
struct machine_process {
	uint32_t pid; /* in the caller's pid namespace; 0: not visible there */
	uint64_t memory;
};
void machine_touch(struct machine *m, uint32_t gpu); /* this process has a context there */
size_t machine_processes(struct machine *m, uint32_t gpu, struct machine_process *out, size_t max);
/* Nanoseconds in which at least one slot of @gpu was occupied, since the machine was created. */
uint64_t machine_busy_time(struct machine *m, uint32_t gpu);

/* The 16 bytes that name GPU @gpu, the same on every machine of this kind. */
void machine_uuid(uint32_t gpu, uint8_t uuid[16]);
/* As NVML spells it. */
#define MACHINE_UUID_TEXT 64u
void machine_uuid_text(uint32_t gpu, char text[MACHINE_UUID_TEXT]);
