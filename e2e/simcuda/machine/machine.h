/* The simulated hardware that all processes of a machine share: SM slots, the queue of kernels for
 * them, and the memory of each process. It is a file in $WEIR_SIM_DIR (default /dev/shm/weir-sim)
 * that every process maps. Containers that mount the same folder share the machine.
 *
 * Each GPU has `sms * sm_blocks` slots; a running block occupies one. Each GPU has one queue of
 * kernels in the order in which they became ready. When a slot is free, the next block comes from
 * the oldest of the kernels with the greatest priority. Running blocks stay. The hardware's block
 * scheduler does the same. A cooperative kernel that has begun goes before all others: its blocks
 * wait for each other, so two such kernels that have each begun in part would wait for ever.
 *
 * A process owns an entry of the process table while it holds a file lock, which the Linux kernel
 * drops when the process dies. A waiting process checks at least every 20 ms whether the others are
 * alive, and frees what dead ones held. Everything in the file belongs to one entry and there are
 * no sums, so freeing is forgetting the entry.
 *
 * Kernels belong to a channel group: a context has one. A group that is stopped keeps its place in
 * the queue and none of its slots. With the setting `slices` one group of a GPU is resident at a
 * time, and only its blocks run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_GPUS      8u
#define MACHINE_SMS       256u
#define MACHINE_PROCESSES 512u
#define MACHINE_KERNELS   4096u /* in the queue of a GPU */
#define MACHINE_GROUPS    16u   /* channel groups of a process */
#define MACHINE_OBJECTS   256u  /* of the resource manager, of a process */
#define MACHINE_GPU_NAME  "Weir Simulated GPU"
#define MACHINE_FIRST_BUS 0x10u /* GPU 0 is 0000:10:00.0 */

struct machine_config {
	uint32_t gpus;
	uint32_t sms;       /* of a GPU */
	uint32_t sm_blocks; /* slots of an SM: blocks that it runs at a time */
	uint32_t block_us;  /* a block occupies its slot at least this long */
	uint64_t memory;    /* bytes of a GPU */
	uint32_t slices;    /* 1: one channel group runs at a time */
	uint32_t switch_us; /* nobody runs for this long when another group becomes resident */
	uint32_t numa; /* NUMA nodes, the first ones have the first GPUs; 0: NVML reports none */
};

static inline uint32_t machine_slots(const struct machine_config *config)
{
	return config->sms * config->sm_blocks;
}

/* Slots are given out from the first, so blocks spread over the SMs. */
static inline uint32_t machine_sm_of(const struct machine_config *config, uint32_t slot)
{
	return slot % config->sms;
}

enum machine_role {
	MACHINE_COMPUTE = 1,  /* a process with CUDA */
	MACHINE_OBSERVER = 2, /* NVML: holds no slots and no memory */
	MACHINE_SERVER = 3,   /* of MPS: has the channel groups of its clients */
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
/* From now on blocks of this process have at most so many slots of a GPU; 0: all. */
void machine_give_slots(struct machine *m, uint32_t slots);
/* Those that it has at most. */
uint32_t machine_given_slots(const struct machine *m);
/* In a child of fork(): closes the parent's locks. */
void machine_forget(struct machine *m);

/* Reads "512M", "2Gi", "1073741824". False: not a size. */
bool machine_parse_size(const char *text, uint64_t *out);

/* Where a block runs. */
struct machine_place {
	uint32_t gpu, slot, group;
	bool held;       /* the slot is ours */
	uint64_t cookie; /* of the kernel */
};

/* All GPUs, or those that CUDA_VISIBLE_DEVICES names up to the first invalid name, as in CUDA. */
size_t machine_visible(const struct machine *m, uint32_t gpus[MACHINE_GPUS]);

struct machine_kernel {
	uint32_t group;
	uint64_t cookie; /* comes back from machine_start() */
	uint64_t blocks;
	int priority;     /* waiting blocks of the kernel with the least begin first, as in CUDA */
	bool cooperative; /* once one of its blocks has begun, the others go before all kernels */
};

/* Puts a kernel at the end of the queue of @gpu. MACHINE_FULL: try again when another kernel is
 * finished. */
int machine_push(struct machine *m, uint32_t gpu, const struct machine_kernel *kernel,
		 uint64_t *ticket);
/* Removes the unstarted blocks of a kernel and returns their number. */
uint64_t machine_cancel(struct machine *m, uint32_t gpu, uint64_t ticket);
/* Starts one block if the first kernel that may run is ours and a slot is free. MACHINE_BUSY:
 * @sequence is for machine_wait(). */
int machine_start(struct machine *m, uint32_t gpu, struct machine_place *place, uint32_t *sequence);
/* The block on @place is done. Starts another one there if the first kernel that may run is ours;
 * else the slot is free (MACHINE_BUSY). */
int machine_next(struct machine *m, struct machine_place *place);
/* The group of the block on @place may run now, and the block has its slot. */
bool machine_may_run(const struct machine *m, const struct machine_place *place);
/* Between instructions of the block on @place: while its group may not run, others have the slot
 * and this call sleeps. It ends without the slot when *@stop is not 0. */
void machine_pause(struct machine *m, struct machine_place *place, const volatile int *stop);
/* Sleeps until the queue may have moved on since @sequence, or a bounded time; then checks for dead
 * processes. */
void machine_wait(struct machine *m, uint32_t gpu, uint32_t sequence);
/* Ends everybody's machine_wait(). */
void machine_wake(struct machine *m, uint32_t gpu);

/* A channel group for a context of this process. There is always one: contexts beyond
 * MACHINE_GROUPS share. */
uint32_t machine_group_new(struct machine *m, uint32_t gpu);
void machine_group_free(struct machine *m, uint32_t group);
/* Nothing of @group's context progresses. */
bool machine_stopped(const struct machine *m, uint32_t group);
/* Waits a bounded time while it is stopped. */
void machine_await(struct machine *m, uint32_t group);

/* A server of MPS names the folder of its pipes, by device and inode; its clients find its groups
 * so. Otherwise as machine_group_new(). MACHINE_GROUPS: there is no such server. */
void machine_server_open(struct machine *m, uint64_t device, uint64_t inode);
uint32_t machine_server_join(struct machine *m, uint32_t gpu, uint64_t device, uint64_t inode);
/* How often a client's end in mid-kernel, or its fault, has hit all clients of this server. Looks
 * for the dead, too. */
uint32_t machine_server_faults(struct machine *m);
/* This server ends the work of its client @pid, which hits no other client. */
void machine_server_terminate(struct machine *m, uint32_t pid);
/* The context of @group has been ended so; machine_hit() is true, too. */
bool machine_terminated(const struct machine *m, uint32_t group);
/* The context of @group is hit. */
bool machine_hit(const struct machine *m, uint32_t group);
/* A fault of @group's context hits the others of its server. */
void machine_hit_others(struct machine *m, uint32_t group);

/* The resource manager, rm.c. A call on descriptor @fd of the control device: 0 or a negative
 * errno; the status is in the structure that @argument points to, in this process. */
long machine_rm_ioctl(struct machine *m, int fd, unsigned long request, void *argument);
/* Every ioctl of this process that is one of the resource manager's ends in machine_rm_ioctl(),
 * whoever makes it. False: not possible here. Call it again before calls that must not fail: others
 * may have taken the signal. @only_if_free: unless somebody has the signal. */
bool machine_rm_trap(struct machine *m, bool only_if_free);
/* A new descriptor of the control device; -1: such a node cannot be made. */
int machine_rm_open(const struct machine *m);
/* Nodes for processes that may not make any, unless somebody made them. */
void machine_rm_make_nodes(const struct machine *m);
/* The group of this process that compute channel group @object of @client names, for a context, as
 * machine_group_new(); MACHINE_GROUPS: none. */
uint32_t machine_rm_group(struct machine *m, uint32_t client, uint32_t object);

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
/* For which part of a period a process ran. */
struct machine_use {
	uint32_t pid; /* as above */
	uint32_t percent;
	uint64_t end_us; /* of the period, wall clock */
};
/* Of the periods that ended after @since_us; those that ended long ago are forgotten. Returns how
 * many there are. */
size_t machine_use(struct machine *m, uint32_t gpu, uint64_t since_us, struct machine_use *out,
		   size_t max);
/* Nanoseconds in which at least one slot of @gpu was occupied, since the machine was created. */
uint64_t machine_busy_time(struct machine *m, uint32_t gpu);

/* The 16 bytes that name GPU @gpu, the same on every machine of this kind. */
void machine_uuid(uint32_t gpu, uint8_t uuid[16]);
/* As NVML spells it. */
#define MACHINE_UUID_TEXT 64u
void machine_uuid_text(uint32_t gpu, char text[MACHINE_UUID_TEXT]);
