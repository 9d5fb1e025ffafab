/* What a client's demand writes into the demand pages of the lower levels (weir/protocol.h): its
 * bit in `word`, `whole` and `places`, and how many SMs its work needs, in `sms`. Lower-level
 * clients may keep the others. demand.c says when. No other file writes these pages.
 *
 * Without weir.dev/yield each launch needs the whole GPU. So do cooperative launches, graphs whose
 * kernels are not known (launch/graph.h), and work in several streams or at several levels. A
 * launch of few blocks needs an SM for each, or as many as the pod names. If it is short, these
 * need not be free of others' blocks: it will do with places of blocks that end (`places`). Where
 * more room makes it faster, it needs that. Launches that would fill more than 3/4 of the SMs, or
 * that may overlap, need the whole GPU, too, or a third or half of the SMs if the client's work is
 * done as soon on these (need-choice.h).
 *
 * The need only grows while demand is shown, and goes back to 0 when the bits are cleared. Each
 * page's record holds what this client has added to that page's sum. A change exchanges the record
 * and adds the difference, so the sum is right whatever threads do at the same time; who changes
 * the need looks again afterwards, so the records follow the last value.
 *
 * SMs that lower levels have left cost them a closing and a continuation of the kernel when they
 * come back. So they stay shown until the next launch is overdue, as long as that costs less. A
 * launch that finds them does not wait for lower levels. So a short kernel may be faster with its
 * blocks packed into as few SMs as stay shown than with an SM for each.
 *
 * A process that MPS started on a part of the SMs (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE) leaves the
 * others to higher levels all the time, whatever its kernels are. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"
#include "gates/need-trial.h"
#include "measure/kernel.h"

struct stream;

/* What launches need: a number of SMs, and a flag if these must be free of others' blocks; or
 * SMS_WHOLE. */
#define SMS_PACKED (1u << 24) /* fewer than blocks */
#define SMS_APART  (1u << 25)
#define SMS_OWN    (SMS_PACKED | SMS_APART)
#define SMS_WHOLE  UINT32_MAX

static inline uint32_t sms_number(uint32_t need)
{
	return need & ~SMS_OWN;
}

/* What a launch may run on. */
enum sms_known {
	SMS_ALL,     /* it needs the whole GPU: its blocks wait for each other, or are not known */
	SMS_ANY,     /* some SMs will do, but it is not counted how many */
	SMS_COUNTED, /* its blocks tell */
};

struct sms {
	_Atomic uint32_t need; /* of the launches since demand was raised; 0: none */
	_Atomic uint32_t last; /* what the launches before the last clearing needed; 0: not known */
	/* The need was guessed before the first launch, and what the launches need since. */
	_Atomic bool guessed;
	_Atomic uint32_t asked;
	_Atomic(struct stream *) stream; /* of these launches; NULL: none yet */
	uint32_t of_gpu;                 /* SMs that the GPU has */
	uint32_t unused;       /* of these, those on which the client's kernels never run (MPS) */
	_Atomic uint32_t kept; /* SMs that stay shown though there is no demand */
	_Atomic uint64_t kept_until; /* ns */
	_Atomic uint64_t gap; /* ns that were expected then until the next launch; 0: not known */
	_Atomic uint32_t packed; /* SMs that are few enough to stay shown for such a gap */
};
PER_CLIENT(sms)

/* The launch path, off the usual way: the control page's `yield` is not 0. @ahead: as below. */
uint32_t sms_count(struct stream *stream, const struct level_binding *binding,
		   const struct geometry *geometry, uint64_t ahead, enum sms_known known);
/* A launch of @geometry may need less than the whole GPU. */
bool sms_are_few(const struct client *client, const struct geometry *geometry);
/* While the need is guessed: a launch needs @n. */
void sms_ask(struct sms *sms, uint32_t n);

static inline uint32_t sms_needed(const struct client *client)
{
	return atomic_load(&sms_of(client)->need);
}

static inline enum need_way sms_way_to(uint32_t need)
{
	if (need == SMS_WHOLE)
		return NEED_WHOLE;
	if (need & SMS_APART)
		return NEED_APART;
	return need & SMS_PACKED ? NEED_PACKED : NEED_PLACES;
}

/* The way of making room for which the client asks now, */
static inline enum need_way sms_way(const struct client *client)
{
	return sms_way_to(sms_needed(client));
}

/* and for which it asked until its work ended. */
static inline enum need_way sms_last_way(const struct client *client)
{
	return sms_way_to(atomic_load(&sms_of(client)->last));
}

/* At least as many as MPS gives a process with such an active thread percentage. On an H100 it
 * gives 12, 32, 66 and 98 of 132 for 10, 25, 50 and 75: pairs, and no more than that part. */
uint32_t sms_given(double percent, uint32_t sms);

/* SMs that are free whatever the client runs: MPS gives its process a part of them only. */
static inline uint32_t sms_unused(const struct client *client)
{
	return sms_of(client)->unused;
}

/* What launches need together. */
static inline uint32_t sms_both(uint32_t a, uint32_t b)
{
	uint32_t most = (uint32_t)larger(sms_number(a), sms_number(b));

	return a == SMS_WHOLE || b == SMS_WHOLE ? SMS_WHOLE : most | ((a | b) & SMS_OWN);
}

/* The client needs more for a launch that needs @sms. */
static inline bool sms_grows(const struct client *client, uint32_t sms)
{
	uint32_t need = sms_needed(client);

	return need != sms && sms_both(need, sms) != need;
}

/* Launch path: what a launch needs. @ahead: predicted ns; 0: not known, or its blocks do not begin
 * ahead of those of lower levels. One load while the client needs the
 * whole GPU anyway. */
static inline uint32_t sms_of_launch(struct stream *stream, const struct client *client,
				     const struct level_binding *binding,
				     const struct geometry *geometry, uint64_t ahead,
				     enum sms_known known)
{
	struct sms *sms = sms_of(client);

	if (atomic_load(&sms->need) == SMS_WHOLE && !load_relaxed(&sms->guessed))
		return SMS_WHOLE;
	uint32_t yield = load_relaxed(&control_page(binding)->yield);
	uint32_t n = yield && known != SMS_ALL ? sms_count(stream, binding, geometry, ahead, known)
					       : SMS_WHOLE;
	if (load_relaxed(&sms->guessed))
		sms_ask(sms, n);
	return n;
}

/* A launch is expected: the client needs what the last ones did. pages_set() must follow. */
void sms_guess(struct client *client);

/* The client needs no less than @need from now on. pages_set() must follow. */
void sms_raise(struct client *client, uint32_t need);
/* Its bits belong into `whole`, too. */
bool sms_are_whole(const struct client *client);
/* Takes the client's SMs from those pages of @former that @now does not have. @now: NULL: none. */
void sms_leave(const struct level_binding *former, const struct level_binding *now);

/* Sets the bit in the words below @level. Returns what else was in the word right below it. */
uint64_t pages_set_below(const struct level_binding *binding, unsigned level, bool whole);
/* Shows the client's need in all pages below it. True: no client of its level or higher had work
 * then. Of several that come at once, one is told so. */
bool pages_set(struct client *client, const struct level_binding *binding);
/* Clears the bits; those of @kept stay, NULL: none. */
void pages_clear(const struct level_binding *binding, const struct level_binding *kept);
/* Clears the bits, and the client needs no SMs. @gap: ns until its next launch is expected, 0: not
 * known. */
void pages_withdraw(struct client *client, const struct level_binding *binding, uint64_t gap);
/* Worker: true: SMs stay shown without demand. Takes them back in time. */
bool sms_stay(struct client *client, uint64_t now);
/* Worker: a client that leaves the GPU to others needs no SMs. */
void sms_withdraw_if_left(struct client *client, const struct level_binding *binding);
/* Worker: its bit is in `whole`, but it needs only some SMs: when the agent gives it the bit back,
 * it does not know what the client needs. */
bool pages_say_too_much(const struct client *client, const struct level_binding *binding);
/* No page of @from and higher levels has the bit. */
void pages_take_from(const struct level_binding *binding, unsigned from);
/* No `whole` has it. */
void pages_unset_whole(const struct level_binding *binding);

/* Columns of the table. */
void sms_settings(void);
void sms_open(struct client *client);
