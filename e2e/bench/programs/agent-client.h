/* A client of the agent without libweir: for programs that play a part of it, and measure. Fails
 * the program when the agent does not answer as it should.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>

#include <weir/protocol.h>

struct agent_client {
	int socket;
	uint8_t level, bit;
	struct weir_demand_page *below[WEIR_DEMAND_LEVELS]; /* of the levels below */
};

/* Says hello to $WEIR_SOCKET, as a client on @device. */
void agent_client_join(struct agent_client *client, CUdevice device);

/* Sets or clears the own bit in the words of all levels below. */
void agent_client_demand(const struct agent_client *client, bool wanted);

/* The next message of @type; others are dropped. *@fd: its first descriptor, or -1. */
void agent_client_receive(const struct agent_client *client, enum weir_message_type type,
			  union weir_message *message, int *fd);
