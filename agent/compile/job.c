#include "compile/job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utlist.h>

#include "compile/job-order.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"
#include "weir/object.h"

void compile_request_free(struct compile_request *request)
{
	async_hash_stop(&request->hash);
	if (request->job)
		DL_DELETE2(request->job->requests, request, job_prev, job_next);
	DL_DELETE(request->client->requests, request);
	request->client->n--;
	request->client->container->n_requests--;
	request->compile->n_requests--;
	closep(&request->object);
	closep(&request->fd);
	free(request);
}

void compile_tell(struct compile *compile, struct compile_client *client, uint32_t id,
		  enum weir_compile_status status, const char *text, int fd)
{
	struct weir_compiled message = {.id = id, .status = status};

	compile->counters.answers[status]++;
	weir_header_init(&message.header, WEIR_COMPILED, sizeof(message));
	snprintf(message.text, sizeof(message.text), "%s", text);
	client->answer(client, &message, fd);
}

void compile_answer(struct compile_request *request, enum weir_compile_status status,
		    const char *text, int fd)
{
	struct compile *compile = request->compile;
	struct compile_client *client = request->client;
	uint32_t id = request->id;

	compile_tell(compile, client, id, status, text, fd);
	compile_request_free(request);
}

static void answer_all(struct compile_job *job, enum weir_compile_status status, const char *text,
		       int fd)
{
	struct compile_request *request, *next;

	DL_FOREACH_SAFE2 (job->requests, request, next, job_next) {
		compile_answer(request, status, text, fd);
	}
}

void compile_job_free(struct compile_job *job)
{
	struct compile *compile = job->compile;

	if (job->running)
		compile->n_running--;
	else
		DL_DELETE(compile->waiting, job);
	HASH_DEL(compile->jobs, job);
	async_hash_stop(&job->keeping);
	cache_discard(&compile->cache, &job->draft);
	helper_stop(&job->helper);
	closep(&job->fd);
	free(job);
}

bool compile_is_object(int fd, uint64_t size, struct compile_counters *counters)
{
	void *object = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (object == MAP_FAILED)
		return false;
	int r = weir_object_check(object, size);
	if (r == 0 && counters)
		compile_count_refusals(counters, object);
	munmap(object, size);
	return r == 0;
}

static void schedule(struct compile *compile);

static void finish(struct compile_job *job, enum weir_compile_status status, const char *text,
		   int fd)
{
	struct compile *compile = job->compile;

	answer_all(job, status, text, fd);
	compile_job_free(job);
	schedule(compile);
}

/* The cache has no room, but the waiting clients get the object. It is sealed only here, because
 * sealing may take milliseconds, and fails while the kernel holds one of its pages. */
static void finish_unkept(struct compile_job *job, int error)
{
	static const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

	job->compile->counters.unkept++;
	log_limited(LOG_WARNING, 60, "the cache cannot keep an object: %s", strerror(-error));
	if (fcntl(job->helper.result, F_ADD_SEALS, seals) == 0)
		finish(job, WEIR_COMPILE_OK, "", job->helper.result);
	else
		finish(job, WEIR_COMPILE_BUSY, "the object cannot be sealed now", -1);
}

static void kept(struct async_hash *hash, int error, const struct digest *content)
{
	struct compile_job *job = container_of(hash, struct compile_job, keeping);
	struct compile *compile = job->compile;
	int fd = -1, r = error ? error : hash->copy_error;

	if (r == 0)
		r = cache_keep(&compile->cache, &job->draft, &job->key, content);
	struct cache_entry *entry = r == 0 ? cache_find(&compile->cache, &job->key) : NULL;
	if (entry)
		fd = cache_open(&compile->cache, entry);
	if (fd >= 0)
		finish(job, WEIR_COMPILE_OK, "", fd);
	else
		finish_unkept(job, r < 0 ? r : fd);
	closep(&fd);
}

static int keep(struct compile_job *job)
{
	struct compile *compile = job->compile;
	int r = cache_draft(&compile->cache, job->size, &job->draft);

	if (r < 0)
		return r;
	job->keeping = (struct async_hash){.fd = job->helper.result,
					   .copy = job->draft.fd,
					   .ranges = {{0, job->size}},
					   .done = kept};
	return async_hash_start(&job->keeping, &compile->hashes, NULL, 0);
}

static void take_object(struct compile_job *job)
{
	struct compile *compile = job->compile;
	struct stat info;

	if (fstat(job->helper.result, &info) < 0 || info.st_size > (off_t)WEIR_OBJECT_MAX ||
	    !compile_is_object(job->helper.result, (uint64_t)info.st_size, &compile->counters)) {
		compile->counters.outcomes[HELPER_CRASH]++;
		log_limited(LOG_ERROR, 5, "weir-compile wrote no object");
		finish(job, WEIR_COMPILE_FAILED, "the compiler wrote no object", -1);
		return;
	}
	job->size = (uint64_t)info.st_size;
	compile->counters.outcomes[HELPER_DONE]++;
	compile_count_time(&compile->counters, loop_now() - job->began);
	int r = keep(job);
	if (r < 0)
		finish_unkept(job, r);
}

/* Its helper is gone, for another container's job. */
static void wait_again(struct compile_job *job)
{
	struct compile *compile = job->compile;

	if (job->requests) {
		helper_stop(&job->helper);
		job->running = job->yields = false;
		compile->n_running--;
		DL_PREPEND(compile->waiting, job);
	} else {
		compile_job_free(job);
	}
	schedule(compile);
}

static void ended(struct helper *helper, enum helper_outcome outcome)
{
	struct compile_job *job = container_of(helper, struct compile_job, helper);
	static const char *const texts[HELPER_OUTCOMES] = {
		[HELPER_REFUSED] = "refused",
		[HELPER_FAILED] = "the compiler refuses it",
		[HELPER_TIME] = "the compiler took too long",
		[HELPER_MEMORY] = "the compiler took too much memory",
		[HELPER_CRASH] = "the compiler crashed",
		[HELPER_KILLED] = "the compiler was killed",
		[HELPER_TROUBLE] = "the compiler does not run",
	};
	char text[sizeof(((struct weir_compiled *)0)->text)];

	if (outcome == HELPER_DONE) {
		take_object(job);
		return;
	}
	if (outcome == HELPER_KILLED && job->yields) {
		wait_again(job);
		return;
	}
	job->compile->counters.outcomes[outcome]++;
	ssize_t n = pread(helper->result, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	compile_clean(text);
	if (!*text || outcome == HELPER_TIME || outcome == HELPER_CRASH || outcome == HELPER_KILLED)
		snprintf(text, sizeof(text), "%s", texts[outcome]);
	log_limited(outcome == HELPER_TROUBLE ? LOG_ERROR : LOG_INFO, 5, "not compiled (%s): %s",
		    helper_outcome_name(outcome), text);
	enum weir_compile_status status =
		outcome == HELPER_REFUSED ? WEIR_COMPILE_REFUSED : WEIR_COMPILE_FAILED;
	/* Other outcomes say nothing about the kernel. */
	if (outcome != HELPER_KILLED && outcome != HELPER_TROUBLE)
		cache_add_failure(&job->compile->cache, &job->key, status, text);
	finish(job, status, text, -1);
}

static void schedule(struct compile *compile)
{
	while (compile->on && compile->waiting) {
		struct compile_job *job = job_order_next(compile);

		if (compile->n_running >= compile->helpers) {
			job_order_make_room(job);
			return;
		}
		DL_DELETE(compile->waiting, job);
		job->running = true;
		compile->n_running++;
		compile->started++;
		for (struct compile_request *r = job->requests; r; r = r->job_next)
			r->client->container->served = r->client->served = compile->started;
		job->began = loop_now();
		int r = helper_start(&job->helper, compile->loop, &compile->program, job->fd,
				     ended);
		if (r == 0)
			continue;
		compile->counters.outcomes[HELPER_TROUBLE]++;
		answer_all(job, WEIR_COMPILE_FAILED, "the compiler does not start", -1);
		compile_job_free(job);
	}
}

void compile_join(struct compile_request *request)
{
	struct compile *compile = request->compile;
	const struct cache_failure *known = cache_find_failure(&compile->cache, &request->key);
	struct compile_job *job;

	if (known) {
		compile->counters.known_failures++;
		compile_answer(request, known->status, known->text, -1);
		return;
	}
	compile->counters.misses++;
	HASH_FIND(hh, compile->jobs, &request->key, sizeof(request->key), job);
	if (!job) {
		job = calloc(1, sizeof(*job));
		if (!job) {
			error_origin(-ENOMEM);
			compile_answer(request, WEIR_COMPILE_BUSY, "the agent has no memory", -1);
			return;
		}
		*job = (struct compile_job){.compile = compile,
					    .key = request->key,
					    .fd = request->fd,
					    .draft = {.fd = -1}};
		request->fd = -1;
		HASH_ADD(hh, compile->jobs, key, sizeof(job->key), job);
		/* A launch waits for the soonest form: first of the client's jobs. */
		if (request->head.soonest)
			DL_PREPEND(compile->waiting, job);
		else
			DL_APPEND(compile->waiting, job);
	}
	request->job = job;
	DL_APPEND2(job->requests, request, job_prev, job_next);
	schedule(compile);
}
