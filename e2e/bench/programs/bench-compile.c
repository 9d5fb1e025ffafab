/* What the first use of a module costs a client: for each of the papers' modules, the time from the
 * requests for its kernels (all forms that can leave) to the last answer of the agent's compile
 * service, and what loading the objects costs then. Each twice: the second time they come from the
 * cache. Prints one line of JSON for each module.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/base.h>
#include <weir/object.h>
#include <weir/transform.h>

#include "agent-client.h"
#include "object.h"
#include "plan.h"

#define KERNELS_MAX 32u
#define FORMS       (1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE)
#define SEALS       (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

struct module {
	const char *ptx;
	unsigned n;
	char *kernels[KERNELS_MAX];
};

/* Milliseconds, and the number of kernels by answer. */
struct round {
	double answer, load;
	unsigned compiled, refused;
};

static void note_kernel(void *data, const struct weir_verdict *verdict)
{
	struct module *module = data;

	if (module->n == KERNELS_MAX)
		workload_fail("too many kernels");
	module->kernels[module->n++] = strdup(verdict->kernel);
}

static void find_kernels(struct module *module)
{
	struct weir_transform_options options = {
		.forms = 1u << WEIR_PERSISTENT, .verdict = note_kernel, .data = module};
	struct weir_error error;
	cleanup(freep) char *out = NULL;
	size_t len;

	if (weir_transform(&out, &len, module->ptx, strlen(module->ptx), &options, &error))
		workload_fail("line %u: %s", error.line, error.message);
}

static void put(int fd, const void *bytes, size_t size)
{
	if (write(fd, bytes, size) != (ssize_t)size)
		workload_fail("a request cannot be written: %s", strerror(errno));
}

static int request_file(const struct module *module, const char *kernel, unsigned sm)
{
	struct weir_compile_file file = {.magic = WEIR_COMPILE_MAGIC,
					 .version = WEIR_PROTOCOL_VERSION,
					 .sm = sm,
					 .forms = FORMS,
					 .name = sizeof(file),
					 .name_size = strlen(kernel) + 1,
					 .image = sizeof(file) + strlen(kernel) + 1,
					 .image_size = strlen(module->ptx) + 1};
	int fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		workload_fail("no memory file: %s", strerror(errno));
	put(fd, &file, sizeof(file));
	put(fd, kernel, file.name_size);
	put(fd, module->ptx, file.image_size);
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		workload_fail("the request cannot be sealed: %s", strerror(errno));
	return fd;
}

static void ask(const struct agent_client *client, int fd, uint32_t id)
{
	struct weir_compile message = {.id = id};

	weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
	if (weir_message_send(client->socket, &message, sizeof(message), &fd, 1))
		workload_fail("the agent takes no request");
}

static void load(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	void *file = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	CUmodule loaded;

	if (file == MAP_FAILED || weir_object_check(file, (size_t)size))
		workload_fail("not an object");
	const struct weir_object *object = file;
	if (object->image_size) {
		CU(cuModuleLoadData(&loaded, (const char *)file + object->image));
		CU(cuModuleUnload(loaded));
	}
	munmap(file, (size_t)size);
	close(fd);
}

/* All requests of a module, no more pending at once than the agent keeps. */
static void run_round(const struct agent_client *client, const struct module *module, unsigned sm,
		      struct round *round)
{
	int files[KERNELS_MAX], objects[KERNELS_MAX];
	unsigned asked = 0, answered = 0, n_objects = 0;
	uint64_t begin, end;

	for (unsigned i = 0; i < module->n; i++)
		files[i] = request_file(module, module->kernels[i], sm);
	*round = (struct round){0};
	begin = now_ns();
	while (answered < module->n) {
		union weir_message message;
		int fd;

		while (asked < module->n && asked - answered < WEIR_COMPILE_PENDING) {
			ask(client, files[asked], asked);
			asked++;
		}
		agent_client_receive(client, WEIR_COMPILED, &message, &fd);
		answered++;
		if (message.compiled.status == WEIR_COMPILE_OK && fd >= 0)
			objects[n_objects++] = fd;
		else if (message.compiled.status == WEIR_COMPILE_REFUSED)
			round->refused++;
		else
			workload_fail("%s: status %u: %s", module->kernels[message.compiled.id],
				      message.compiled.status, message.compiled.text);
	}
	end = now_ns();
	round->answer = (double)(end - begin) / 1e6;
	round->compiled = n_objects;
	for (unsigned i = 0; i < n_objects; i++)
		load(objects[i]);
	round->load = (double)(now_ns() - end) / 1e6;
	for (unsigned i = 0; i < module->n; i++)
		close(files[i]);
}

static void run(const struct agent_client *client, const struct benchmark *benchmark, unsigned sm)
{
	struct module module = {.ptx = benchmark->ptx};
	struct round cold, cached;

	find_kernels(&module);
	run_round(client, &module, sm, &cold);
	run_round(client, &module, sm, &cached);
	printf("{\"module\": \"%s\", \"bytes\": %zu, \"kernels\": %u, \"compiled\": %u, "
	       "\"cold_ms\": %.3f, \"cached_ms\": %.3f, \"load_ms\": %.3f}\n",
	       benchmark->name, strlen(module.ptx), module.n, cached.compiled, cold.answer,
	       cached.answer, cached.load);
	fflush(stdout);
	for (unsigned i = 0; i < module.n; i++)
		free(module.kernels[i]);
}

static bool seen_before(size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (benchmarks[i].ptx == benchmarks[index].ptx)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct agent_client client;

	workload_parse(&w, argc, argv, "the first use of a module, cold and from the cache", NULL);
	workload_open(&w, NULL);
	agent_client_join(&client, w.device);
	workload_ready(&w);
	for (size_t i = 0; i < benchmark_count; i++)
		if (!seen_before(i))
			run(&client, &benchmarks[i], object_sm(w.device));
	workload_close(&w);
	return 0;
}
