#include "compile/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utlist.h>

#include "compile/job-order.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"
#include "weir/object.h"
#include "weir/preempt-abi.h"

/* Hashed before name and image: the kernel's digest, which is the same for every compiler. */
struct kernel_salt {
	uint64_t name_size, image_size;
};

/* All that an object is made from. */
struct object_salt {
	struct digest fingerprint, kernel;
	uint32_t abi, object_version, machine_code, memory_mib, sm, forms, registers, soonest;
};

static void request_free(struct compile_request *request)
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

static void tell(struct compile *compile, struct compile_client *client, uint32_t id,
		 enum weir_compile_status status, const char *text, int fd)
{
	struct weir_compiled message = {.id = id, .status = status};

	compile->counters.answers[status]++;
	weir_header_init(&message.header, WEIR_COMPILED, sizeof(message));
	snprintf(message.text, sizeof(message.text), "%s", text);
	client->answer(client, &message, fd);
}

/* Answers and frees the request. */
static void answer(struct compile_request *request, enum weir_compile_status status,
		   const char *text, int fd)
{
	struct compile *compile = request->compile;
	struct compile_client *client = request->client;
	uint32_t id = request->id;

	tell(compile, client, id, status, text, fd);
	request_free(request);
}

static void answer_all(struct compile_job *job, enum weir_compile_status status, const char *text,
		       int fd)
{
	struct compile_request *request, *next;

	DL_FOREACH_SAFE2 (job->requests, request, next, job_next) {
		answer(request, status, text, fd);
	}
}

static void job_free(struct compile_job *job)
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

/* The file is sealed or only the agent has it. @counters: count the object's refusals, or NULL. */
static bool is_object(int fd, uint64_t size, struct compile_counters *counters)
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
	job_free(job);
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
	    !is_object(job->helper.result, (uint64_t)info.st_size, &compile->counters)) {
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
		job_free(job);
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
		job_free(job);
	}
}

/* The cache has no object for the request. */
static void join_job(struct compile_request *request)
{
	struct compile *compile = request->compile;
	const struct cache_failure *known = cache_find_failure(&compile->cache, &request->key);
	struct compile_job *job;

	if (known) {
		compile->counters.known_failures++;
		answer(request, known->status, known->text, -1);
		return;
	}
	compile->counters.misses++;
	HASH_FIND(hh, compile->jobs, &request->key, sizeof(request->key), job);
	if (!job) {
		job = calloc(1, sizeof(*job));
		if (!job) {
			error_origin(-ENOMEM);
			answer(request, WEIR_COMPILE_BUSY, "the agent has no memory", -1);
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

static void verified(struct async_hash *hash, int error, const struct digest *content)
{
	struct compile_request *request = container_of(hash, struct compile_request, hash);
	struct compile *compile = request->compile;
	struct cache_entry *entry = cache_find(&compile->cache, &request->found);
	struct stat info;

	if (error == 0 && entry && memcmp(content, &entry->content, sizeof(*content)) == 0 &&
	    fstat(request->object, &info) == 0 &&
	    is_object(request->object, (uint64_t)info.st_size, NULL)) {
		compile->counters.hits++;
		answer(request, WEIR_COMPILE_OK, "", request->object);
		return;
	}
	if (entry) {
		compile->counters.damaged++;
		log_limited(LOG_WARNING, 5,
			    "an object in the cache is damaged; compiling it again");
		cache_drop(&compile->cache, entry);
	}
	join_job(request);
}

static int verify(struct compile_request *request, const struct cache_entry *entry)
{
	request->object = cache_open(&request->compile->cache, entry);
	if (request->object < 0)
		return request->object;
	request->hash = (struct async_hash){
		.fd = request->object, .copy = -1, .ranges = {{0, entry->size}}, .done = verified};
	return async_hash_start(&request->hash, &request->compile->hashes, NULL, 0);
}

static int make_key(const struct compile_request *request, const struct digest *kernel,
		    bool soonest, struct digest *out)
{
	const struct compile *compile = request->compile;
	const struct request *head = &request->head;
	struct object_salt salt = {
		.fingerprint = compile->fingerprint,
		.kernel = *kernel,
		.abi = WEIR_PREEMPT_ABI,
		.object_version = WEIR_OBJECT_VERSION,
		.machine_code = compile->program.machine_code,
		/* A form may be refused for lack of memory. */
		.memory_mib = compile->program.memory_mib,
		.sm = head->sm,
		.forms = head->forms,
		.registers = head->registers,
		.soonest = soonest,
	};

	return digest_bytes(out, &salt, sizeof(salt));
}

/* An object with all forms is better than one with the soonest. */
static struct cache_entry *find_cached(struct compile_request *request)
{
	struct cache *cache = &request->compile->cache;
	struct cache_entry *entry = cache_find(cache, &request->found);

	if (entry)
		return entry;
	request->found = request->key;
	return cache_find(cache, &request->key);
}

static void hashed(struct async_hash *hash, int error, const struct digest *kernel)
{
	struct compile_request *request = container_of(hash, struct compile_request, hash);
	struct cache *cache = &request->compile->cache;

	if (error == 0)
		error = make_key(request, kernel, false, &request->found);
	if (error == 0)
		error = make_key(request, kernel, request->head.soonest, &request->key);
	if (error < 0) {
		answer(request, WEIR_COMPILE_REFUSED, strerror(-error), -1);
		return;
	}
	if (request->client->kernel)
		request->client->kernel(request->client, request->id, kernel);
	struct cache_entry *entry = find_cached(request);
	int r = entry ? verify(request, entry) : -ENOENT;
	if (r == 0)
		return;
	if (r == -EIO) {
		request->compile->counters.damaged++;
		cache_drop(cache, entry);
	}
	join_job(request);
}

/* What is wrong with the client's file; NULL: nothing. */
static const char *examine(int fd, struct request *out)
{
	static const int needed = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	struct weir_compile_file head;
	struct stat info;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & needed) != needed)
		return "not a memory file sealed against writing, growing and shrinking";
	if (fstat(fd, &info) < 0 || pread(fd, &head, sizeof(head), 0) != sizeof(head))
		return "a file of impossible size";
	return request_check(out, &head, (uint64_t)info.st_size);
}

static int start_hashing(struct compile_request *request)
{
	const struct request *head = &request->head;
	struct kernel_salt salt = {head->name_size, head->image_size};

	request->hash = (struct async_hash){
		.fd = request->fd,
		.copy = -1,
		.ranges = {{head->name, head->name_size}, {head->image, head->image_size}},
		.done = hashed};
	return async_hash_start(&request->hash, &request->compile->hashes, &salt, sizeof(salt));
}

static bool has_room(const struct compile *compile, const struct compile_client *client)
{
	unsigned n = client->container->n_requests;

	return client->n < WEIR_COMPILE_PENDING && n < COMPILE_CONTAINER_MAX &&
	       (n < COMPILE_FIRST || compile->n_requests < COMPILE_REQUESTS_MAX);
}

void compile_ask(struct compile *compile, struct compile_client *client, uint32_t id, int fd_taken)
{
	cleanup(closep) int fd = fd_taken;
	struct request head;

	if (!compile->on) {
		tell(compile, client, id, WEIR_COMPILE_OFF, "this agent does not compile", -1);
		return;
	}
	if (!has_room(compile, client)) {
		tell(compile, client, id, WEIR_COMPILE_BUSY, "too many requests wait", -1);
		return;
	}
	const char *wrong = examine(fd, &head);
	if (wrong) {
		tell(compile, client, id, WEIR_COMPILE_REFUSED, wrong, -1);
		return;
	}
	struct compile_request *request = calloc(1, sizeof(*request));
	if (!request) {
		error_origin(-ENOMEM);
		tell(compile, client, id, WEIR_COMPILE_BUSY, "the agent has no memory", -1);
		return;
	}
	*request = (struct compile_request){.compile = compile,
					    .client = client,
					    .id = id,
					    .fd = take_fd(fd),
					    .object = -1,
					    .head = head};
	DL_APPEND(client->requests, request);
	client->n++;
	client->container->n_requests++;
	compile->n_requests++;
	if (start_hashing(request) < 0)
		answer(request, WEIR_COMPILE_BUSY, "the agent has no memory", -1);
}

void compile_leave(struct compile_client *client)
{
	struct compile_request *request, *next;

	DL_FOREACH_SAFE (client->requests, request, next) {
		struct compile_job *job = request->job;
		request_free(request);
		if (job && !job->requests && !job->running)
			job_free(job);
	}
}

/* Opens @configured, or weir-compile beside the agent. */
static int open_program(const char *configured)
{
	char path[PATH_MAX];

	if (*configured)
		return file_open(AT_FDCWD, configured, O_RDONLY);
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("weir-compile"));
	if (n < 0)
		return -1;
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	if (!slash)
		return -1;
	memcpy(slash + 1, "weir-compile", sizeof("weir-compile"));
	return file_open(AT_FDCWD, path, O_RDONLY);
}

int compile_init(struct compile *compile, struct loop *loop, const struct config_compile *config,
		 const char *cache_dir, bool machine_code)
{
	*compile = COMPILE_NONE;
	compile->loop = loop;
	compile->helpers = config->helpers;
	compile->program = (struct helper_program){
		.fd = -1,
		.machine_code = config->mode == COMPILE_MACHINE_CODE ||
				(config->mode == COMPILE_AUTO && machine_code),
		.memory_mib = config->memory_mib,
		.seconds = config->seconds,
	};
	if (config->mode == COMPILE_OFF)
		return 0;
	compile->program.fd = open_program(config->program);
	if (compile->program.fd < 0) {
		log_warning("no weir-compile (%s): kernels run as they are",
			    *config->program ? config->program : strerror(errno));
		return 0;
	}
	int r = digest_file(&compile->fingerprint, compile->program.fd);
	if (r < 0) {
		log_warning("weir-compile cannot be read: %s", strerror(-r));
		return 0;
	}
	r = hash_queue_init(&compile->hashes, loop);
	if (r < 0)
		return r;
	r = cache_init(&compile->cache, cache_dir, (uint64_t)config->cache_mib << 20);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	compile->on = true;
	log_info("kernels are compiled to %s; cache at %s, %u MiB",
		 compile->program.machine_code ? "machine code" : "PTX", cache_dir,
		 config->cache_mib);
	return 0;
}

void compile_deinit(struct compile *compile)
{
	struct compile_job *job, *next;

	HASH_ITER (hh, compile->jobs, job, next) {
		job_free(job);
	}
	cache_deinit(&compile->cache);
	hash_queue_deinit(&compile->hashes);
	closep(&compile->program.fd);
	*compile = COMPILE_NONE;
}
