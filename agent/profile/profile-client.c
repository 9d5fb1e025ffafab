#include "profile/profile-client.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "scheduler/gpu/gpu.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/log.h"

/* False: the client has no scope. Its pod is not known yet. */
static bool key_of(const struct profile_service *service, const struct client *client,
		   const struct digest *kernel, struct profile_key *out)
{
	const struct tenant *tenant = client->tenant;
	char user[32];

	snprintf(user, sizeof(user), "uid:%u", (unsigned)tenant->identity.uid);
	bool in_pod = tenant->identity.in_pod && !service->standalone;
	const char *scope = in_pod ? tenant->namespace_ : user;
	return *scope && profile_key_make(out, scope, client->gpu->name, kernel);
}

int profile_client_tell(struct profile_service *service, const struct client *client, uint32_t id,
			const struct digest *kernel)
{
	struct weir_profile found[WEIR_PROFILE_KERNEL];
	struct profile_key key;
	unsigned n, at = 0;
	int r = 0;

	if (!service->on || !client->takes_profiles || !key_of(service, client, kernel, &key))
		return 0;
	n = profiles_find(&service->profiles, &key, (uint64_t)time(NULL), found);
	do {
		struct weir_profile_message message = {
			.id = id, .n = (uint32_t)smaller(n - at, WEIR_PROFILE_ENTRIES)};
		weir_header_init(&message.header, WEIR_PROFILE, sizeof(message));
		memcpy(message.kernel, kernel->bytes, sizeof(message.kernel));
		memcpy(message.entries, found + at, message.n * sizeof(found[0]));
		r = weir_message_send(client->socket, &message, sizeof(message), NULL, 0);
		at += message.n;
	} while (r == 0 && at < n);
	return r;
}

void profile_client_hear(struct profile_service *service, const struct client *client,
			 const struct weir_learned *learned)
{
	struct digest kernel;
	struct profile_key key;

	memcpy(kernel.bytes, learned->kernel, sizeof(kernel.bytes));
	if (!service->on || !key_of(service, client, &kernel, &key))
		return;
	bool taken = profiles_learn(&service->profiles, &key, &learned->profile,
				    (uint64_t)time(NULL), monotonic_now());
	log_debug("client %llu: a profile for %s is %s", (unsigned long long)client->number,
		  key.scope, taken ? "kept" : "refused");
	profile_file_changed(&service->file);
}
