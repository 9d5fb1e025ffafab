#include "daemon/session-answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kubernetes/pods.h"

#include "weir/base.h"
#include "weir/log.h"

void session_send_refused(struct sessions *sessions, int fd, enum weir_refusal reason, pid_t pid,
			  const char *text, bool limited)
{
	struct weir_refused message = session_refused(reason, text);

	message.flags = limited ? WEIR_REFUSED_LIMITED : 0;
	sessions->refused[reason]++;
	log_limited(LOG_WARNING, 1, "client refused (%s), pid %d: %s", session_refusal_name(reason),
		    (int)pid, text);
	weir_message_send(fd, &message, sizeof(message), NULL, 0);
}

bool session_refuse(const struct session *session, enum weir_refusal reason, const char *text)
{
	struct decider *decider = session->sessions->decider;
	bool limited = session->state == SESSION_AWAITS_LIMIT
			       ? decider->limited
			       : decider_has_limit(decider, session->tenant);

	session_send_refused(session->sessions, session->fd, reason, session->pid, text, limited);
	/* A container with a share has one GPU. */
	if (session->tenant->usages)
		session->tenant->usages->quotas.refused++;
	return false;
}

static void send_compiled(struct compile_client *asked, const struct weir_compiled *message, int fd)
{
	const struct client *client = container_of(asked, struct session, compile)->client;
	int r = weir_message_send(client->socket, message, sizeof(*message), &fd, fd >= 0);
	struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (usage)
		usage->quotas.compile_busy += message->status == WEIR_COMPILE_BUSY;
	if (r < 0)
		clients_cut_off(client, "the kernel that it asked for", r);
}

static void tell_profiles(struct compile_client *asked, uint32_t id, const struct digest *kernel)
{
	const struct session *session = container_of(asked, struct session, compile);
	int r = profile_client_tell(session->sessions->profiles, session->client, id, kernel);

	if (r < 0)
		clients_cut_off(session->client, "the kernel's profiles", r);
}

static int send_account(const struct session *session, const struct memory *memory, uint32_t slot)
{
	struct weir_account message = {.slot = slot};
	int fds[] = {memory->limit.readonly, memory->account.writable};

	weir_header_init(&message.header, WEIR_ACCOUNT, sizeof(message));
	return weir_message_send(session->fd, &message, sizeof(message), fds, countof(fds));
}

static int make_client(struct session *session, struct gpu *gpu)
{
	struct newcomer new = {.tenant = session->tenant,
			       .gpu = gpu,
			       .hello = &session->hello,
			       .pid = session->pid,
			       .socket = session->fd,
			       .process = session->process};

	session->compile.answer = send_compiled;
	session->compile.kernel = tell_profiles;
	session->compile.container = &session->tenant->compiling;
	return clients_add(&session->sessions->clients, &new, &session->client);
}

/* 0; GPUS_UNKNOWN, also for a GPU that the session may not use; or a negative errno. */
static int find_gpu(const struct session *session, const uint8_t uuid[16], struct gpu **gpu)
{
	if (session->only && memcmp(session->only->uuid, uuid, 16) != 0)
		return GPUS_UNKNOWN;
	return gpus_get(session->sessions->gpus, uuid, gpu);
}

bool session_welcome(struct session *session)
{
	struct sessions *sessions = session->sessions;
	char id[GPU_ID_SIZE], text[128];
	struct gpu *gpu;
	int r = find_gpu(session, session->hello.gpu, &gpu);

	gpu_id_format(session->hello.gpu, id);
	if (r > 0) {
		snprintf(text, sizeof(text), "no GPU %s here", id);
		return session_refuse(session, WEIR_REFUSED_GPU, text);
	}
	if (r == 0) {
		sessions->new_gpu(sessions, gpu);
		r = make_client(session, gpu);
	}
	if (r == 0) {
		profile_client_tell_program(sessions->profiles, session->client);
		r = clients_welcome(session->client);
	}
	if (r < 0) {
		snprintf(text, sizeof(text), "the agent has trouble: %s", strerror(-r));
		return session_refuse(session, WEIR_REFUSED_INTERNAL, text);
	}
	/* Opens an account from before the agent's restart, to watch its processes again. */
	struct memory_owner owner = decider_memory_owner(sessions->decider, session->tenant, gpu);
	memories_find(sessions->memories, &owner);
	log_debug("client %llu: %s, pid %d, level %u, bit %u of %s, libweir %.31s",
		  (unsigned long long)session->client->number, session->client->command,
		  (int)session->pid, session->client->level, session->client->bit, id,
		  session->client->library);
	return true;
}

bool session_tell_account(struct session *session)
{
	struct sessions *sessions = session->sessions;
	struct memory *memory;
	struct gpu *gpu;
	int r = find_gpu(session, session->asked, &gpu);

	if (r > 0) {
		/* Nobody has a limit on a GPU that is not here. */
		session_send_refused(sessions, session->fd, WEIR_REFUSED_GPU, session->pid,
				     "no such GPU here", false);
		return false;
	}
	if (r == 0) {
		struct memory_owner owner =
			decider_memory_owner(sessions->decider, session->tenant, gpu);
		r = memories_enter(sessions->memories, &owner, session->pid, session->process,
				   &memory);
	}
	if (r >= 0) {
		/* Metrics include clients that only allocate memory. */
		tenant_usage(session->tenant, gpu);
		decider_share_memory(sessions->decider);
		r = send_account(session, memory, (uint32_t)r);
	}
	if (r == -ENOSPC)
		return session_refuse(session, WEIR_REFUSED_LIMIT,
				      "too many processes with accounts of memory");
	return r >= 0 || session_refuse(session, WEIR_REFUSED_INTERNAL, strerror(-r));
}

bool session_note_wait(struct session *session, const struct weir_memory_waits *message)
{
	struct gpu *gpu;

	if (find_gpu(session, message->gpu, &gpu) != 0)
		return false;
	memory_wait_begin(&session->wait, session->tenant, gpu, message->bytes, loop_now());
	return true;
}

bool session_level_unknown(const struct session *session)
{
	return session->hello.claimed_bit != WEIR_BIT_NONE &&
	       decider_awaits_pod(session->sessions->decider, session->tenant);
}

bool session_limit_unknown(const struct session *session)
{
	struct sessions *sessions = session->sessions;
	struct gpu *gpu;

	if (!sessions->decider->pods || !session->tenant->identity.in_pod ||
	    session->tenant->memory_known || find_gpu(session, session->asked, &gpu) != 0)
		return false;
	struct memory_owner owner = decider_memory_owner(sessions->decider, session->tenant, gpu);
	return !memories_find(sessions->memories, &owner);
}

static struct gpu *pipes_gpu_of(const struct session *session)
{
	return pipes_gpu(session->sessions->pipes, session->only, session->asked);
}

bool session_pipes_unknown(const struct session *session)
{
	const struct tenant *tenant = session->tenant;
	struct gpu *gpu = pipes_gpu_of(session);

	if (!gpu)
		return false;
	if (session->sessions->decider->pods && tenant->identity.in_pod && !tenant->pod_known)
		return true;
	return !pipes_ready(session->sessions->pipes, gpu, tenant->level);
}

bool session_tell_pipes(const struct session *session)
{
	return pipes_answer(session->sessions->pipes, session->fd, pipes_gpu_of(session),
			    session->tenant->level, session->pid) == 0;
}

bool session_tell_pipes_later(const struct session *session)
{
	if (session->sessions->decider->pods)
		pods_hurry(session->sessions->decider->pods);
	return pipes_answer_later(session->fd) == 0;
}
