/* A client of the agent without libweir: for programs that play a part of it, and measure. Fails
 * the program when the agent does not answer as it should.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>

#include <weir/protocol.h>

struct guest {
	int socket;
	uint8_t level, bit;
	struct weir_demand_page *below[WEIR_DEMAND_LEVELS]; /* of the levels below */
};

/* Says hello to $WEIR_SOCKET, as a client on @device. */
void guest_join(struct guest *guest, CUdevice device);

/* Sets or clears the own bit in the words of all levels below. */
void guest_demand(const struct guest *guest, bool wanted);

/* The next message of @type; others are dropped. *@fd: its first descriptor, or -1. */
void guest_receive(const struct guest *guest, enum weir_message_type type,
		   union weir_message *message, int *fd);
