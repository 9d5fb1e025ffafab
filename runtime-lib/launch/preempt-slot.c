#include "launch/preempt-slot.h"

#include "preempt/tuning.h"

#include "weir/log.h"

#include <string.h>
#include <sys/mman.h>

struct preempting preempting_table[CLIENTS_MAX];

#define SAVES_MAX (1ull << 30)
/* The driver allocates blocks of this size, and puts several smaller allocations into one: ours
 * would share a block with the program's, and move it. */
#define BLOCK        (2ull << 20)
#define REPORTS_SIZE (PREEMPT_SLOTS_MAX * FLIGHTS_MAX * sizeof(struct weir_report))

/* @left: launches of the chain that left a part of the SMs; the upper half: those of them that came
 * back in another launch, which are no evictions, but need a continuation each. */
static void landed(struct client *client, const struct flight *flight, uint32_t evictions,
		   uint64_t left)
{
	struct preempting *preempting = preempting_of(client);
	uint32_t returns = (uint32_t)(left >> 32);

	if (flight->sample)
		atomic_store(&flight->sample->flight,
			     !evictions && !left ? SAMPLE_CLEAN
			     : evictions == 1 && !left && flight->sample->parts
				     ? SAMPLE_EVICTED_ONCE
				     : SAMPLE_EVICTED);
	preempting->evictions[flight->form] += evictions - smaller(returns, evictions);
	preempting->partial_leaves += (uint32_t)left;
	autotune_evicted(&flight->tuned->tuner, evictions, flight->chain);
}

/* @blocks: as reported with the flight, since the slot was made. */
static void count_blocks(struct client *client, struct preempt_slot *slot,
			 const struct flight *flight, uint64_t blocks)
{
	struct preempting *preempting = preempting_of(client);
	uint32_t saved = (uint32_t)blocks - (uint32_t)slot->blocks;
	uint32_t drained = (uint32_t)(blocks >> 32) - (uint32_t)(slot->blocks >> 32);

	/* The GPU writes both words of a report at once, but nothing guarantees it. */
	if (saved > INT32_MAX || drained > INT32_MAX)
		return;
	preempting->blocks_saved += saved;
	preempting->bytes_saved += saved * flight->save;
	preempting->blocks_drained += drained;
	slot->blocks = blocks;
}

/* Adds what has come since the last report; both halves as in struct weir_report. The GPU writes
 * the report only if there is something to tell, so it may still be that of an older launch. */
static uint64_t count_partial(struct preempt_slot *slot, uint64_t partial)
{
	uint32_t launches = (uint32_t)partial - (uint32_t)slot->partial;
	uint32_t returns = (uint32_t)(partial >> 32) - (uint32_t)(slot->partial >> 32);

	if (!launches || launches > INT32_MAX || returns > launches)
		return 0;
	slot->partial = partial;
	return (uint64_t)returns << 32 | launches;
}

/* Takes finished launches, in order: if one is finished, so are those before it. True: some are
 * left. */
static bool look_at_slot(struct client *client, struct preempt_slot *slot)
{
	uint32_t last = atomic_load(&slot->last), seen = atomic_load(&slot->seen);

	while (seen != last) {
		uint32_t serial = seen + 1;
		const struct preempt_report *told = &slot->reports[serial % FLIGHTS_MAX];
		uint64_t report = atomic_load(&told->launch);

		/* What is there of an older launch has another serial. */
		if ((uint32_t)report != serial)
			break;
		const struct flight *flight = &slot->flights[serial % FLIGHTS_MAX];
		landed(client, flight, (uint32_t)(report >> 32) - slot->evictions,
		       count_partial(slot, atomic_load(&told->partial)));
		if (flight->save)
			count_blocks(client, slot, flight, atomic_load(&told->blocks));
		atomic_fetch_sub(&slot->links, flight->chain);
		slot->evictions = (uint32_t)(report >> 32);
		slot->landed = flight->number;
		seen = serial;
		atomic_store(&slot->seen, seen);
	}
	if (seen == last && atomic_load(&slot->orphan)) {
		atomic_store(&slot->orphan, 0);
		atomic_store(&slot->taken, 0);
	}
	return seen != last;
}

/* All resources ended with their context. */
static void renew(struct preempt_slots *slots)
{
	slots->state = SLOTS_NONE;
	slots->zeroing = NULL;
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		struct preempt_slot *slot = &slots->slot[i];
		slot->taken = slot->orphan = 0;
		slot->last = slot->seen = slot->links = slot->evictions = 0;
		slot->landed = slot->blocks = slot->partial = 0;
		slot->saves = slot->saves_size = slot->saves_wanted = slot->saves_refused = 0;
	}
}

static bool look_at_slots(struct client *client)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);
	bool flying = false;

	if (slots && atomic_exchange(&slots->stale, 0))
		renew(slots);
	for (size_t i = 0; slots && i < PREEMPT_SLOTS_MAX; i++) {
		if (atomic_load(&slots->slot[i].taken) && look_at_slot(client, &slots->slot[i]))
			flying = true;
	}
	return flying;
}

/* If the newest launch is finished, all are. */
bool preempt_done(struct stream *stream)
{
	const struct preempt_slot *slot = atomic_load(&stream->slot);

	return slot && slot->landed && slot->landed == atomic_load(&stream->begun);
}

void preempt_stream_gone(struct stream *stream)
{
	struct preempt_slot *slot = atomic_exchange(&stream->slot, NULL);

	if (slot)
		atomic_store(&slot->orphan, 1);
}

static uint64_t whole_blocks(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

/* Device words, cleared in a stream of their own, and host memory for reports. */
static enum slots_state make(struct preempt_slots *slots)
{
	if (!slots->reports) {
		void *memory = mmap(NULL, REPORTS_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return SLOTS_REFUSED;
		slots->reports = memory;
	}
	memset((void *)slots->reports, 0, REPORTS_SIZE);
	size_t words = PREEMPT_SLOTS_MAX * sizeof(struct weir_words);
	if (real(cuMemHostRegister_v2)((void *)slots->reports, REPORTS_SIZE,
				       CU_MEMHOSTREGISTER_DEVICEMAP |
					       CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS ||
	    real(cuMemHostGetDevicePointer_v2)(&slots->reports_gpu, (void *)slots->reports, 0) !=
		    CUDA_SUCCESS ||
	    real(cuMemAlloc_v2)(&slots->words, whole_blocks(words)) != CUDA_SUCCESS ||
	    real(cuStreamCreate)(&slots->zeroing, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
		return SLOTS_REFUSED;
	if (real(cuMemsetD8Async)(slots->words, 0, words, slots->zeroing) == CUDA_SUCCESS)
		return SLOTS_ZEROING;
	real(cuStreamDestroy_v2)(take(slots->zeroing));
	return SLOTS_REFUSED;
}

static void begin(struct preempt_slots *slots)
{
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		struct preempt_slot *slot = &slots->slot[i];
		slot->words = slots->words + i * sizeof(struct weir_words);
		slot->reports = slots->reports + i * FLIGHTS_MAX;
		slot->reports_gpu =
			slots->reports_gpu + i * FLIGHTS_MAX * sizeof(struct weir_report);
	}
}

static void advance(struct preempt_slots *slots)
{
	CUresult result;

	switch (slots->state) {
	case SLOTS_NONE:
		slots->state = make(slots);
		if (slots->state == SLOTS_REFUSED)
			log_warning("no memory for kernels that can leave: all run natively");
		break;
	case SLOTS_ZEROING:
		result = real(cuStreamQuery)(slots->zeroing);
		if (result == CUDA_ERROR_NOT_READY)
			break;
		real(cuStreamDestroy_v2)(take(slots->zeroing));
		begin(slots);
		slots->state = result == CUDA_SUCCESS ? SLOTS_READY : SLOTS_REFUSED;
		break;
	case SLOTS_READY:
	case SLOTS_REFUSED:
		break;
	}
}

static struct preempt_slot *free_slot(struct preempt_slots *slots)
{
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		if (!atomic_load(&slots->slot[i].taken))
			return &slots->slot[i];
	}
	log_limited(LOG_INFO, 3600, "more than %d streams with long kernels: some stay native",
		    PREEMPT_SLOTS_MAX);
	return NULL;
}

static void give_slots(struct client *client, struct preempt_slots *slots)
{
	stream_for_each (s, client) {
		if (!atomic_exchange(&s->slot_wanted, 0) || atomic_load(&s->slot))
			continue;
		struct preempt_slot *slot = free_slot(slots);
		if (!slot) /* it asks again at its next launch */
			continue;
		slot->landed = 0;
		atomic_store(&slot->taken, 1);
		atomic_store(&s->slot, slot);
		if (atomic_load(&s->key) <= STREAM_GOES) /* the stream ended meanwhile */
			preempt_stream_gone(s);
	}
}

/* Makes a larger area. The old one stays, because launches in flight may use it, and freeing it
 * would wait for the GPU. So the size at least doubles. */
static void grow_saves(struct preempt_slot *slot)
{
	uint64_t wanted = atomic_load(&slot->saves_wanted), size = atomic_load(&slot->saves_size);
	CUdeviceptr area;

	if (wanted <= size || wanted == slot->saves_refused)
		return;
	wanted = whole_blocks(larger(wanted, 2 * size));
	if (wanted > SAVES_MAX || real(cuMemAlloc_v2)(&area, wanted) != CUDA_SUCCESS) {
		slot->saves_refused = atomic_load(&slot->saves_wanted);
		log_limited(LOG_WARNING, 3600,
			    "no %llu MB to save running kernels: they stay native",
			    (unsigned long long)wanted >> 20);
		return;
	}
	atomic_store(&slot->saves, area);
	atomic_store(&slot->saves_size, wanted);
}

static bool pending(const struct client *client)
{
	const struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	return atomic_load(&preempting_of(client)->slots_wanted) ||
	       (slots && slots->state == SLOTS_ZEROING);
}

void preempt_drive(struct client *client, struct tick *tick)
{
	(void)tick;
	if (!pending(client))
		return;
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	if (!slots) {
		slots = calloc(1, sizeof(*slots));
		if (!slots)
			return;
		atomic_store(&preempting_of(client)->slots, slots);
	}
	advance(slots);
	if (slots->state == SLOTS_ZEROING)
		return;
	atomic_store(&preempting_of(client)->slots_wanted, 0);
	if (slots->state != SLOTS_READY)
		return;
	give_slots(client, slots);
	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		if (atomic_load(&slots->slot[i].taken))
			grow_saves(&slots->slot[i]);
	}
}

void preempt_forget(struct client *client)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	atomic_store(&preempting_of(client)->slots_wanted, 0);
	if (slots)
		atomic_store(&slots->stale, 1);
}

void preempt_look(struct client *client, struct tick *tick)
{
	tick->flying = look_at_slots(client); /* first: it may renew what pending() reads */
	tick->forms |= pending(client);
}

/* The slots stay: a thread in the middle of a launch may use them. */
void preempt_init(struct client *client)
{
	struct preempting *preempting = preempting_of(client);

	atomic_store(&preempting->latest, NULL);
	for (size_t i = 0; i < WEIR_STATUS_FORMS; i++)
		preempting->launches[i] = preempting->evictions[i] = 0;
	preempting->blocks_saved = preempting->blocks_drained = preempting->bytes_saved = 0;
	preempting->partial_leaves = 0;
}
