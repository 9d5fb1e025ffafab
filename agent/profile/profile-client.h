/* Profiles between the agent and its clients: PROFILE and LEARNED (weir/protocol.h). */
#pragma once

#include <stdio.h>

#include "profile/profile-file.h"
#include "scheduler/client.h"

struct profile_service {
	bool on;
	bool standalone; /* scopes are users, in pods as well */
	struct profiles profiles;
	struct profile_file file;
};

/* The client has asked for this kernel by request @id: tells what is known of it. Returns 0, also
 * if there is nothing to be told, or the negative errno of a socket that takes no more. */
int profile_client_tell(struct profile_service *service, const struct client *client, uint32_t id,
			const struct digest *kernel);
/* What earlier processes of the client's program have found (weir_control_page.yield_known). */
void profile_client_tell_program(struct profile_service *service, const struct client *client);
/* A client has settled a kernel, or its program. */
void profile_client_hear(struct profile_service *service, const struct client *client,
			 const struct weir_learned *learned);

void profile_metrics_write(FILE *out, const struct profile_service *service);
