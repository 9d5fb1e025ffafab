/* ffs, fairness first (FLEP, section 5.2.2): weighted round robin. Client i runs T * Wi in each
 * round, with the smallest T for which the switches of a round, sum(Oi), are no more than
 * maxOverhead of its length, sum(T * Wi). A round is also no shorter than minQuantum for each
 * client, and no longer than the smallest latency objective among them.
 *
 * Where the hardware shares the GPU by weight, its slices are T * Wi, with what a switch between
 * kernels costs there. They are more exact than turns and cost less: in turns of 4 and 9 ms shares
 * were up to 5.6 points off and 6 % of the time was lost, because the driver takes 0.3 to 0.8 ms to
 * stop a client and to let it go on (H100).
 *
 * What a client ran too long (a late timer, a slow eviction) is taken from its next runs. What it
 * ran too little it may run later: in this round if its run was cut short; in the next ones if
 * other clients' kernels had not left yet. */
#include "policy/policy.h"

#include <assert.h>

#include "weir/base.h"

#define ROUNDS_MAX 8 /* of debt, and of what is owed to a client */
/* ns that a slice of the hardware costs: the switch, 0.26 ms, and what the kernels that come back
 * take longer at first. Measured: 0.15 to 0.36 ms, depending on the kernels (H100). */
#define SLICE_COST 360000ull

struct ffs {
	int64_t balance; /* ns that it may still run in this round */
	int64_t back;    /* ns of earlier rounds that other clients used */
	uint64_t ticket; /* its place in the ring */
	bool fresh;      /* it has not run in this round */
};

/* The queue's state is the last ticket. */
static_assert(sizeof(struct ffs) <= POLICY_STATE_SIZE, "fits");

static void go_last(struct run_queue *queue, struct ffs *ffs)
{
	ffs->ticket = ++*(uint64_t *)policy_state(queue);
	ffs->fresh = true;
}

static uint64_t round_length(const struct run_queue *queue)
{
	const struct policy_settings *settings = queue->settings;
	uint64_t length = larger(queue->costs * 1000000 / settings->max_overhead,
				 queue->n_active * settings->min_quantum);

	return queue->slo ? smaller(queue->slo, length) : length;
}

/* T * Wi. */
static int64_t part(const struct run_queue_entry *entry)
{
	return (int64_t)((unsigned __int128)round_length(entry->queue) * entry->weight /
			 entry->queue->weights) +
	       1;
}

/* A run that is shorter than a switch is worth nothing. A client with so small a part runs for
 * several rounds at once, and pays for the later ones in advance. With an objective rounds are as
 * short as it demands. */
static int64_t least(const struct run_queue *queue, int64_t whole)
{
	int64_t shortest = (int64_t)queue->settings->min_quantum;

	return queue->slo || whole >= shortest ? 0 : shortest;
}

/* Slices do all that turns do. They depend on which clients have work. */
static bool slices_now(const struct run_queue *queue)
{
	(void)queue;
	return true;
}

static uint64_t slice(const struct policy_settings *settings)
{
	return SLICE_COST * 1000000 / settings->max_overhead;
}

static uint64_t rank(const struct run_queue_entry *entry)
{
	const struct ffs *ffs = policy_state(entry);

	return ffs->ticket;
}

static void arrived(struct run_queue_entry *entry)
{
	struct ffs *ffs = policy_state(entry);

	go_last(entry->queue, ffs);
	if (ffs->balance > 0)
		ffs->balance = 0;
}

static uint64_t quantum(struct run_queue_entry *entry)
{
	struct ffs *ffs = policy_state(entry);
	int64_t whole = part(entry), shortest = least(entry->queue, whole);
	int64_t debts = shortest > ROUNDS_MAX * whole ? shortest : ROUNDS_MAX * whole;

	if (ffs->balance < -debts)
		ffs->balance = -debts;
	if (ffs->fresh && ffs->balance > 0)
		ffs->balance = 0;
	if (ffs->fresh || ffs->balance <= 0) {
		int64_t back = ffs->back < whole ? ffs->back : whole;
		ffs->balance += whole + back;
		ffs->back -= back;
		if (ffs->back > ROUNDS_MAX * whole)
			ffs->back = ROUNDS_MAX * whole;
	}
	ffs->fresh = false;
	if (ffs->balance <= 0)
		return 0;
	return (uint64_t)(ffs->balance < shortest ? shortest : ffs->balance);
}

static void ran(struct run_queue_entry *entry, int64_t ns)
{
	struct ffs *ffs = policy_state(entry);

	if (ns < 0)
		ffs->back -= ns;
	else
		ffs->balance -= ns;
}

static void ended(struct run_queue_entry *entry, uint64_t left)
{
	if (left == 0)
		go_last(entry->queue, policy_state(entry));
}

const struct policy policy_ffs = {.name = "ffs",
				  .shares = true,
				  .slices_now = slices_now,
				  .slice = slice,
				  .rank = rank,
				  .quantum = quantum,
				  .arrived = arrived,
				  .ran = ran,
				  .ended = ended};
