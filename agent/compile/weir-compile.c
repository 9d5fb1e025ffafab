/* weir-compile: answers one COMPILE request, and exits. weir-agent runs it with the client's file
 * and an empty file for the result (request.h). It enters the sandbox before it reads a byte. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compile/assemble.h"
#include "compile/request.h"
#include "compile/sandbox.h"

#include "weir/base.h"
#include "weir/object.h"
#include "weir/transform.h"

__attribute__((visibility("default"))) const char *argp_program_version =
	"weir-compile " WEIR_VERSION;

struct arguments {
	bool machine_code;
	struct sandbox sandbox;
};

enum { OPTION_MACHINE_CODE = 0x100, OPTION_MEMORY, OPTION_SECONDS };

static uint32_t number(const char *text, struct argp_state *state)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value == 0 || value > UINT32_MAX)
		argp_error(state, "expected a number, not `%s`", text);
	return (uint32_t)value;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case OPTION_MACHINE_CODE:
		arguments->machine_code = true;
		return 0;
	case OPTION_MEMORY:
		arguments->sandbox.memory_mib = number(value, state);
		return 0;
	case OPTION_SECONDS:
		arguments->sandbox.seconds = number(value, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"machine-code", OPTION_MACHINE_CODE, NULL, 0, "Not PTX", 0},
	{"memory", OPTION_MEMORY, "MIB", 0, "At most this much address space", 0},
	{"seconds", OPTION_SECONDS, "N", 0, "At most this much CPU time", 0},
	{0},
};

static const struct argp description = {
	.options = options,
	.parser = parse,
	.doc = "Compiles one kernel of the request in descriptor 3 into descriptor 4, in a "
	       "sandbox. "
	       "Run by weir-agent.",
};

static int write_all(const void *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = pwrite(RESULT_FD, (const char *)data + at, size - at, (off_t)at);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static enum request_exit say(enum request_exit code, const char *text)
{
	write_all(text, strlen(text));
	return code;
}

/* With a NUL after it; the caller frees it. NULL: see errno. Read instead of mapped, because holes
 * of a mapped file would become memory. */
static char *read_part(uint64_t offset, uint64_t size)
{
	char *part = malloc(size + 1);
	ssize_t n = 1;

	for (uint64_t at = 0; part && at < size && n > 0; at += n > 0 ? (uint64_t)n : 0)
		n = pread(REQUEST_FD, part + at, size - at, (off_t)(offset + at));
	if (part && n <= 0) {
		free(part);
		errno = n ? errno : EIO;
		return NULL;
	}
	if (part)
		part[size] = '\0';
	return part;
}

static enum request_exit judge(int error, const char *text)
{
	switch (error) {
	case -ENOMEM:
		return say(REQUEST_NO_MEMORY, text);
	case -ENOENT:
	case -EINVAL:
		return say(REQUEST_REFUSED, text);
	default:
		return say(REQUEST_FAILED, text);
	}
}

static enum request_exit build(const struct weir_object_request *request)
{
	cleanup(freep) void *object = NULL;
	struct weir_error error = {0};
	size_t size = 0;
	int r = weir_object_build(&object, &size, request, &error);

	if (r < 0)
		return judge(r, *error.message ? error.message : strerror(-r));
	r = write_all(object, size);
	return r < 0 ? judge(r, strerror(-r)) : REQUEST_DONE;
}

static enum request_exit answer(bool machine_code, const struct request *request)
{
	cleanup(freep) char *name = read_part(request->name, request->name_size);

	if (!name)
		return judge(-errno, strerror(errno));
	if (strlen(name) != request->name_size - 1)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): cleanup() frees it */
		return say(REQUEST_REFUSED, "a name with an end inside, or without one");
	cleanup(freep) char *image = read_part(request->image, request->image_size);
	if (!image)
		return judge(-errno, strerror(errno));
	return build(&(struct weir_object_request){.image = image,
						   .len = request->image_size,
						   .kernel = name,
						   .sm = request->sm,
						   .forms = request->forms,
						   .registers = request->registers,
						   .soonest = request->soonest,
						   .assemble = machine_code ? assemble : NULL});
}

static enum request_exit read_and_answer(bool machine_code, uint64_t size)
{
	struct weir_compile_file head = {0};
	struct request request;

	if (pread(REQUEST_FD, &head, sizeof(head), 0) < 0)
		return judge(-errno, strerror(errno));
	const char *wrong = request_check(&request, &head, size);
	return wrong ? say(REQUEST_REFUSED, wrong) : answer(machine_code, &request);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.sandbox = {.memory_mib = 1024, .seconds = 30, .file_max = WEIR_OBJECT_MAX}};
	struct stat info;
	const char *what;
	char text[128];

	argp_parse(&description, argc, argv, 0, NULL, &arguments);
	if (fstat(REQUEST_FD, &info) < 0) {
		fprintf(stderr, "weir-compile: no request in descriptor %d\n", REQUEST_FD);
		return REQUEST_NO_SANDBOX;
	}
	int r = sandbox_enter(&arguments.sandbox, &what);
	if (r < 0) {
		snprintf(text, sizeof(text), "no sandbox: %s: %s", what, strerror(-r));
		return say(REQUEST_NO_SANDBOX, text);
	}
	return read_and_answer(arguments.machine_code, (uint64_t)info.st_size);
}
