#include "preempt/forms.h"

#include "client/link.h"
#include "client/request.h"
#include "preempt/code.h"
#include "preempt/load-moment.h"

#include "weir/log.h"

#include <errno.h>
#include <string.h>

static _Atomic int awaited[CLIENTS_MAX];     /* threads that wait for forms */
static _Atomic uint32_t wanted[CLIENTS_MAX]; /* forms of a kernel of this client are wanted */

/* Requests at a time for kernels that nobody has launched: the others find room, and a helper. */
#define AHEAD_MAX 1u

void forms_want(struct function *function)
{
	bool first = load_relaxed(&function->state) == FUNCTION_NATIVE &&
		     function_move(function, FUNCTION_NATIVE, FUNCTION_WANTED);

	if (first || function->is_ahead)
		atomic_store(&wanted[function->client->index], 1);
	function->is_ahead = false;
}

bool forms_want_ahead(struct function *function)
{
	if (!function_move(function, FUNCTION_NATIVE, FUNCTION_WANTED))
		return false;
	function->is_ahead = true;
	atomic_store(&wanted[function->client->index], 1);
	return true;
}

void forms_await(const struct client *client, bool begins)
{
	atomic_fetch_add(&awaited[client->index], begins ? 1 : -1);
}

bool forms_are_awaited(const struct client *client)
{
	return atomic_load(&awaited[client->index]) != 0;
}

/* An answer that need not be loaded, or can be loaded now. */
static struct request *ready_answer(struct client *client)
{
	struct request *answer = request_answered(client);

	return answer && (answer->status != WEIR_COMPILE_OK ||
			  load_moment(client, forms_are_awaited(client)))
		       ? answer
		       : NULL;
}

static bool pending(struct client *client)
{
	return ready_answer(client) ||
	       (atomic_load(&wanted[client->index]) && request_room(client));
}

/* The driver keeps it as long as the code is loaded. */
static const char *name_of(const struct function *function)
{
	const char *name = NULL;
	CUresult result = function->origin.library
				  ? real(cuKernelGetName)(&name, (CUkernel)function->origin.handle)
				  : real(cuFuncGetName)(&name, function->origin.handle);

	return result == CUDA_SUCCESS ? name : NULL;
}

static void refuse(struct function *function, int from, const char *name, const char *reason)
{
	log_debug("kernel %s runs natively: %s", name ? name : "?", reason);
	function_move(function, from, FUNCTION_REFUSED);
}

/* 0: not known. */
static unsigned registers_of(const struct function *function)
{
	CUfunction original = rewrite_original(&function->origin);
	int registers = 0;

	if (!original || real(cuFuncGetAttribute)(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
						  original) != CUDA_SUCCESS)
		return 0;
	return registers > 0 ? (unsigned)registers : 0;
}

static void ask(struct client *client, struct function *function)
{
	const void *owner = atomic_load(&function->origin.owner);
	const char *name = owner ? name_of(function) : NULL;
	const char *reason = "the driver does not tell where it comes from";
	struct image *image = name ? code_image(owner, &reason) : NULL;
	unsigned sm = driver_capability(client->device);
	struct image *fit = image ? image_for(image, sm) : NULL;
	bool soonest =
		(function->is_ahead || forms_are_awaited(client)) && !function->soonest_asked;
	int file = fit ? rewrite_request(fit, name, sm, registers_of(function),
					 soonest ? WEIR_COMPILE_SOONEST : 0)
		       : -ENOENT;

	if (image && file < 0)
		reason = fit ? strerror(-file)
			     : "its PTX is of another architecture than its machine code";
	image_unref(fit);
	image_unref(image);
	if (file < 0) {
		refuse(function, FUNCTION_WANTED, name, reason);
		return;
	}
	function->asks_soonest = soonest;
	function->soonest_asked |= soonest;
	function->request = request_put(client, file);
	function_move(function, FUNCTION_WANTED, FUNCTION_REQUESTED);
	link_wake();
}

static struct function *requester(const struct client *client, uint32_t id)
{
	function_for_each (f) {
		if (atomic_load(&f->state) == FUNCTION_REQUESTED && f->client == client &&
		    f->request == id)
			return f;
	}
	return NULL; /* its code was unloaded */
}

/* All forms are asked for when the kernel is launched. */
static enum function_state behind_soonest(const struct function *function)
{
	return function->is_ahead ? FUNCTION_NATIVE : FUNCTION_WANTED;
}

/* Either we see here that the program changed attributes meanwhile, or the changing thread sees
 * that the kernel is ready. */
static void publish(struct function *function, const struct rewritten *rewritten, bool soonest)
{
	uint32_t changes;

	function_know_original(function);
	atomic_store(soonest ? &function->soonest : &function->rewritten, rewritten);
	function_move(function, FUNCTION_REQUESTED,
		      soonest ? behind_soonest(function) : FUNCTION_READY);
	do {
		changes = atomic_load(&function->changes);
		function_follow(function);
	} while (changes != atomic_load(&function->changes));
}

/* The answer to a request for the soonest form; NULL: there is none. Then for all of them. */
static void answered_soonest(struct function *function, const struct rewritten *rewritten)
{
	if (rewritten)
		publish(function, rewritten, true);
	else
		function_move(function, FUNCTION_REQUESTED, behind_soonest(function));
	atomic_store(&wanted[function->client->index], 1);
}

static void answered(struct client *client, struct request *answer)
{
	struct function *function = requester(client, answer->id);
	const char *name = function ? name_of(function) : NULL;
	const struct rewritten *rewritten = NULL, *soonest;
	bool compiled = answer->status == WEIR_COMPILE_OK;
	char text[REWRITE_TEXT];

	if (!name)
		return;
	if (compiled)
		rewritten = rewrite_load(&function->origin, name, driver_capability(client->device),
					 answer->file, text);
	if (rewritten && !atomic_load(&function->profiles))
		atomic_store(&function->profiles, take(answer->profiles));
	bool partial = function->asks_soonest && (!rewritten || rewritten->is_partial);
	soonest = atomic_load(&function->soonest);
	if (rewritten)
		function->loaded[partial] = rewritten;
	if (partial)
		answered_soonest(function, rewritten);
	else if (rewritten || soonest)
		publish(function, rewritten ? rewritten : soonest, false);
	else
		refuse(function, FUNCTION_REQUESTED, name, compiled ? text : answer->text);
	if (rewritten)
		log_debug("kernel %s can run in forms: %s", name, text);
}

static unsigned requests_ahead(const struct client *client)
{
	unsigned n = 0;

	function_for_each (f)
		n += atomic_load(&f->state) == FUNCTION_REQUESTED && f->client == client &&
		     f->is_ahead;
	return n;
}

/* Asks for kernels that are launched, or for the others. True: some are left, without room. */
static bool ask_all(struct client *client, bool ahead)
{
	function_for_each (f) {
		if (atomic_load(&f->state) != FUNCTION_WANTED || f->client != client ||
		    f->is_ahead != ahead)
			continue;
		if (!request_room(client) || (ahead && requests_ahead(client) >= AHEAD_MAX))
			return true;
		ask(client, f);
	}
	return false;
}

static void work(struct client *client)
{
	/* One at a time: loading takes a while. */
	struct request *answer = ready_answer(client);

	if (answer) {
		load_moment_over(client);
		answered(client, answer);
		request_done(answer);
		atomic_store(&wanted[client->index], 1);
	}
	if (!request_room(client) || !atomic_exchange(&wanted[client->index], 0))
		return;
	if (ask_all(client, false))
		atomic_store(&wanted[client->index], 1);
	else if (!forms_are_awaited(client))
		ask_all(client, true); /* the rest behind the next answer */
}

void forms_look(struct client *client, struct tick *tick)
{
	tick->forms |= pending(client);
}

void forms_drive(struct client *client, struct tick *tick)
{
	(void)tick;
	if (request_answered(client))
		load_moment_watch(client);
	if (pending(client))
		work(client);
}

void forms_forget(struct client *client)
{
	load_moment_over(client); /* the worker is through with the client */
}

void forms_fork(void)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		atomic_store(&awaited[i], 0);
}
