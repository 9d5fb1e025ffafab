#include "compile/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "compile/job.h"

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

static void verified(struct async_hash *hash, int error, const struct digest *content)
{
	struct compile_request *request = container_of(hash, struct compile_request, hash);
	struct compile *compile = request->compile;
	struct cache_entry *entry = cache_find(&compile->cache, &request->found);
	struct stat info;

	if (error == 0 && entry && memcmp(content, &entry->content, sizeof(*content)) == 0 &&
	    fstat(request->object, &info) == 0 &&
	    compile_is_object(request->object, (uint64_t)info.st_size, NULL)) {
		compile->counters.hits++;
		compile_answer(request, WEIR_COMPILE_OK, "", request->object);
		return;
	}
	if (entry) {
		compile->counters.damaged++;
		log_limited(LOG_WARNING, 5,
			    "an object in the cache is damaged; compiling it again");
		cache_drop(&compile->cache, entry);
	}
	compile_join(request);
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
		compile_answer(request, WEIR_COMPILE_REFUSED, strerror(-error), -1);
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
	compile_join(request);
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
		compile_tell(compile, client, id, WEIR_COMPILE_OFF, "this agent does not compile",
			     -1);
		return;
	}
	if (!has_room(compile, client)) {
		compile_tell(compile, client, id, WEIR_COMPILE_BUSY, "too many requests wait", -1);
		return;
	}
	const char *wrong = examine(fd, &head);
	if (wrong) {
		compile_tell(compile, client, id, WEIR_COMPILE_REFUSED, wrong, -1);
		return;
	}
	struct compile_request *request = calloc(1, sizeof(*request));
	if (!request) {
		error_origin(-ENOMEM);
		compile_tell(compile, client, id, WEIR_COMPILE_BUSY, "the agent has no memory", -1);
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
		compile_answer(request, WEIR_COMPILE_BUSY, "the agent has no memory", -1);
}

void compile_leave(struct compile_client *client)
{
	struct compile_request *request, *next;

	DL_FOREACH_SAFE (client->requests, request, next) {
		struct compile_job *job = request->job;
		compile_request_free(request);
		if (job && !job->requests && !job->running)
			compile_job_free(job);
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
		compile_job_free(job);
	}
	cache_deinit(&compile->cache);
	hash_queue_deinit(&compile->hashes);
	closep(&compile->program.fd);
	*compile = COMPILE_NONE;
}
