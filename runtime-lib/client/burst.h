/* Bursts: how long work takes that comes to the idle client, until all of it is done. Who is below
 * may make it wait for a small part of that (weir/protocol.h). So of the latest bursts the shortest
 * counts. Demand that is shown for work that never comes is none. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define BURST_KEPT 16u /* of so many at least, and at most of twice as many, the shortest */
#define BURST_LONG \
	1000000000u /* ns: what went before one that lasts longer says nothing any more */

/* Of a client; any thread. */
struct burst {
	_Atomic uint64_t since;          /* ns, when it began; 0: there is none */
	_Atomic uint64_t seen;           /* ns, when work was last seen outstanding */
	_Atomic uint64_t former, latest; /* ns, the shortest of each lot; 0: there were none */
	_Atomic unsigned n;              /* of the latest lot */
};

/* Work came at @now; it may go on already. */
void burst_begin(struct burst *burst, uint64_t now);
/* Worker: work is outstanding at @now. */
void burst_goes_on(struct burst *burst, uint64_t now);
/* It is over; @idle: when there was once no work in it. */
void burst_end(struct burst *burst, uint64_t idle);

/* ns for which it has been going on at @now; 0: there is none. */
uint64_t burst_lasts(const struct burst *burst, uint64_t now);

/* ns that one takes, for the status page; 0: not known. One that goes on counts while none is over,
 * and if it is long: of who never rests nothing else would be known. */
uint64_t burst_told(const struct burst *burst);
