/* A client of the agent without libweir, for programs that measure. Each function ends the program
 * when the agent does not answer as it should.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>

#include <weir/protocol.h>

struct agent_client {
	int socket;
	uint8_t level, bit;
	struct weir_demand_page *below[WEIR_DEMAND_LEVELS]; /* of the lower levels */
};

/* Registers at $WEIR_SOCKET as a client on @device. */
void agent_client_join(struct agent_client *client, CUdevice device);

/* Sets or clears this client's bit in the demand words of all lower levels. */
void agent_client_demand(const struct agent_client *client, bool wanted);

/* The next message of @type; others are dropped. *@fd: its first descriptor, or -1. */
void agent_client_receive(const struct agent_client *client, enum weir_message_type type,
			  union weir_message *message, int *fd);
