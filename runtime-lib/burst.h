/* Bursts: how long work takes that comes to the idle client, until all of it is done. Who is below
 * may make it wait for a small part of that (weir/protocol.h). So of many bursts the short ones
 * count: what is known falls at once, and grows slowly. Demand that is shown for work that never
 * comes is none. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Of a client; any thread. */
struct burst {
	_Atomic uint64_t since; /* ns, when it began; 0: there is none */
	_Atomic uint64_t seen;  /* ns, when work was last seen outstanding */
	_Atomic uint64_t known; /* ns that one takes; 0: none is over yet */
};

/* Pure. What is known after one more of @length ns, which is not 0. */
uint64_t burst_learn(uint64_t known, uint64_t length);

/* Work came at @now; it may go on already. */
void burst_begin(struct burst *burst, uint64_t now);
/* Worker: work is outstanding at @now. */
void burst_goes_on(struct burst *burst, uint64_t now);
/* It is over; @idle: when there was once no work in it. */
void burst_end(struct burst *burst, uint64_t idle);

/* What is known, for the status page. One that goes on counts as if it were over where that is
 * more: of who never rests nothing else would ever be known. */
uint64_t burst_told(const struct burst *burst);
