/* A driver that does nothing but be observable: what libweir asks of it is counted, and what it
 * answers can be set. For tests of libweir's own decisions; whatever depends on a GPU's behaviour
 * is tested on the simulated one. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct null_driver {
	_Atomic int launches, graph_launches, gates, waits_in_gates, events_recorded, registered;
	_Atomic int streams_busy; /* what queries answer */
	_Atomic int capturing;    /* what cuStreamIsCapturing answers */
	_Atomic int contexts_destroyed, streams_destroyed;
	_Atomic uint64_t elapsed_ns; /* of every sample */

	_Atomic int modules_loaded, modules_unloaded, synchronised;
	_Atomic int loads_fail;                  /* what loading a module answers */
	_Atomic int shared_max, form_shared_max; /* dynamic shared memory that a function may be
						    given at most; and one that is called "form" */
	_Atomic int globals;                     /* bytes of every variable, 0: there are none */
};
