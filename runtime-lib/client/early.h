/* Early demand: a copy to the GPU often precedes a launch, so demand can be shown while it goes on,
 * and those below have left when the kernel comes. Whether it pays is learned from each client's
 * own copies: of late most must have been followed by a launch, and soon, for the GPU is idle
 * between. Bits that were set for nothing are cleared by the worker. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client;
struct level_binding;

#define EARLY_LEAD_MAX                                                            \
	500000u /* ns from the copy to the launch; what takes longer does not pay \
		 */

/* Of a client; any thread. */
struct early {
	_Atomic uint64_t since; /* ns, of the first copy since there was no demand; 0: none */
	_Atomic uint64_t until; /* ns, when bits that were set early go */
	_Atomic uint64_t lead;  /* ns from such a copy to the launch, running mean */
	_Atomic uint32_t trust; /* 0 to 256: how many of them were followed by a launch soon */
};

/* Reads the settings from the environment; before the first client. */
void early_init(void);

/* Pure. The copy was followed by a launch after @lead ns; UINT64_MAX: by none for too long. */
void early_learn(struct early *early, uint64_t lead);
bool early_pays(const struct early *early);

/* Any thread: a copy to the GPU begins. */
void early_copy(struct client *client);

/* Launch path: a launch came at @now, when no demand was shown, or only early. */
void early_launched(struct client *client, const struct level_binding *binding, uint64_t now);

/* Worker: true while bits that were set early are to stay. */
bool early_stays(const struct client *client, uint64_t now);
/* Worker: they have been cleared, and nothing came. */
void early_missed(struct client *client, uint64_t now);
