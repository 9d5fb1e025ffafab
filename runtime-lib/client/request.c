#include "client/request.h"

#include "weir/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_WITHIN (300 * NS_PER_S) /* ns */
#define FULL_AGAIN    (50 * NS_PER_MS) /* the socket was full */
#define BUSY_AGAIN    NS_PER_S         /* the service was busy the first time; then twice as long */
#define BUSY_SHIFT    5u               /* doubled at most this often */
#define LOST_MAX      3u               /* agents that may die while a request is sent */

static struct {
	struct request requests[REQUESTS_MAX];
	uint32_t last; /* worker: the newest request's number */
} states[CLIENTS_MAX];

#define request_for_each(r, client)                                   \
	for (struct request * (r) = states[(client)->index].requests; \
	     (r) < states[(client)->index].requests + REQUESTS_MAX; (r)++)

struct request *request_at(const struct client *client, size_t index)
{
	return &states[client->index].requests[index];
}

static int state_of(const struct request *request)
{
	return load_acquire(&request->state);
}

/* Hands the slot over to the other thread. */
static void set_state(struct request *request, enum request_state state)
{
	store_release(&request->state, state);
}

bool request_room(const struct client *client)
{
	request_for_each (request, client) {
		if (state_of(request) == REQUEST_FREE)
			return true;
	}
	return false;
}

struct request *request_answered(struct client *client)
{
	request_for_each (request, client) {
		if (state_of(request) == REQUEST_ANSWERED)
			return request;
	}
	return NULL;
}

uint32_t request_put(struct client *client, int file)
{
	request_for_each (request, client) {
		if (state_of(request) != REQUEST_FREE)
			continue;
		request->id = ++states[client->index].last;
		request->file = file;
		request->due = 0;
		request->lost = request->busy = 0;
		request->profiles = NULL;
		set_state(request, REQUEST_QUEUED);
		return request->id;
	}
	close(file);
	return 0;
}

static void close_file(struct request *request)
{
	if (request->file >= 0)
		close(take_fd(request->file));
}

void request_done(struct request *request)
{
	close_file(request);
	free(take(request->profiles));
	set_state(request, REQUEST_FREE);
}

static void finish(struct request *request, enum weir_compile_status status, int file,
		   const char *text)
{
	close_file(request);
	request->file = file;
	request->status = status;
	snprintf(request->text, sizeof(request->text), "%s", text);
	set_state(request, REQUEST_ANSWERED);
}

static void send_one(int socket, struct request *request, uint64_t now)
{
	struct weir_compile message = {.id = request->id};

	weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
	int r = weir_message_send(socket, &message, sizeof(message), &request->file, 1);
	if (r == -EAGAIN) {
		request->due = now + FULL_AGAIN;
	} else if (r) { /* the link notices the end of the connection */
		request->due = UINT64_MAX;
	} else {
		request->due = now + ANSWER_WITHIN;
		set_state(request, REQUEST_SENT);
	}
}

uint64_t request_send(struct client *client, int socket, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	request_for_each (request, client) {
		int state = state_of(request);
		if (state == REQUEST_QUEUED && request->due <= now)
			send_one(socket, request, now);
		else if (state == REQUEST_SENT && request->due <= now)
			finish(request, WEIR_COMPILE_FAILED, -1, "the agent does not answer");
		state = state_of(request);
		if (state == REQUEST_QUEUED || state == REQUEST_SENT)
			next = smaller(next, request->due);
	}
	return next;
}

static struct request *find_sent(struct client *client, uint32_t id)
{
	request_for_each (request, client) {
		if (state_of(request) == REQUEST_SENT && request->id == id)
			return request;
	}
	return NULL;
}

void request_profiles(struct client *client, const struct weir_profile_message *message)
{
	struct request *request = find_sent(client, message->id);

	if (request && !request->profiles)
		request->profiles = calloc(1, sizeof(*request->profiles));
	struct kernel_profiles *profiles = request ? request->profiles : NULL;
	if (!profiles)
		return;
	memcpy(profiles->kernel, message->kernel, sizeof(profiles->kernel));
	for (uint32_t i = 0; i < message->n && profiles->n < WEIR_PROFILE_KERNEL; i++)
		if (weir_profile_is_sane(&message->entries[i]))
			profiles->entries[profiles->n++] = message->entries[i];
}

/* @off: this agent has no service: ask the next agent. */
static void ask_later(struct request *request, bool off, uint64_t now)
{
	request->due = off ? UINT64_MAX : now + (BUSY_AGAIN << smaller(request->busy, BUSY_SHIFT));
	request->busy++;
	free(take(request->profiles));
	set_state(request, REQUEST_QUEUED);
}

void request_answer(struct client *client, const struct weir_compiled *answer, int file,
		    uint64_t now)
{
	struct request *request = find_sent(client, answer->id);

	if (!request) {
		log_debug("the agent answers a request that was not made: %u", answer->id);
	} else if (answer->status == WEIR_COMPILE_OFF || answer->status == WEIR_COMPILE_BUSY) {
		if (answer->status == WEIR_COMPILE_OFF)
			log_limited(LOG_DEBUG, 3600,
				    "this agent has no compile service: kernels run as they are");
		ask_later(request, answer->status == WEIR_COMPILE_OFF, now);
	} else if (answer->status == WEIR_COMPILE_OK && file >= 0) {
		finish(request, WEIR_COMPILE_OK, take_fd(file), "");
	} else {
		finish(request,
		       answer->status == WEIR_COMPILE_REFUSED ? WEIR_COMPILE_REFUSED
							      : WEIR_COMPILE_FAILED,
		       -1, answer->text);
	}
	if (file >= 0)
		close(file);
}

void request_lost(struct client *client)
{
	request_for_each (request, client) {
		int state = state_of(request);
		if (state != REQUEST_QUEUED && state != REQUEST_SENT)
			continue;
		if (state == REQUEST_SENT && ++request->lost == LOST_MAX) {
			finish(request, WEIR_COMPILE_FAILED, -1,
			       "several agents died while they compiled it");
			continue;
		}
		request->due = 0;
		free(take(request->profiles)); /* the next agent has its own */
		set_state(request, REQUEST_QUEUED);
	}
}

void request_reset(struct client *client)
{
	request_for_each (request, client) {
		if (state_of(request) != REQUEST_FREE) {
			close_file(request);
			free(take(request->profiles));
		}
		set_state(request, REQUEST_FREE);
	}
}
