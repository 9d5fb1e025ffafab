#include "profile/profile-client.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "scheduler/gpu/gpu.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/file.h"
#include "weir/log.h"

#define COMMAND_LINE_MAX 4096 /* bytes that count */

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

/* The client's program with its arguments, by which another process of it is known. */
static bool program_of(const struct client *client, struct digest *out)
{
	static const char salt[] = "weir program";
	char bytes[sizeof(salt) + COMMAND_LINE_MAX], path[32];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)client->pid);
	memcpy(bytes, salt, sizeof(salt));
	ssize_t n = file_read(AT_FDCWD, path, bytes + sizeof(salt), COMMAND_LINE_MAX);
	return n > 0 && digest_bytes(out, bytes, sizeof(salt) + (size_t)n) == 0;
}

void profile_client_tell_program(struct profile_service *service, const struct client *client)
{
	struct weir_profile found[WEIR_PROFILE_KERNEL];
	struct profile_key key;
	struct digest program;

	if (!service->on || !program_of(client, &program) ||
	    !key_of(service, client, &program, &key) ||
	    !profiles_known(&service->profiles, &key, (uint64_t)time(NULL), found))
		return;
	atomic_store(&client->pages.control->yield_known, found[0].yields);
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

static bool is_program(const struct digest *kernel)
{
	static const struct digest program;

	return memcmp(kernel, &program, sizeof(program)) == 0;
}

void profile_client_hear(struct profile_service *service, const struct client *client,
			 const struct weir_learned *learned)
{
	struct digest kernel;
	struct profile_key key;

	memcpy(kernel.bytes, learned->kernel, sizeof(kernel.bytes));
	bool known = !is_program(&kernel) || program_of(client, &kernel);
	if (!service->on || !known || !key_of(service, client, &kernel, &key))
		return;
	bool taken = profiles_learn(&service->profiles, &key, &learned->profile,
				    (uint64_t)time(NULL), monotonic_now());
	log_debug("client %llu: a profile for %s is %s", (unsigned long long)client->number,
		  key.scope, taken ? "kept" : "refused");
	profile_file_changed(&service->file);
}
