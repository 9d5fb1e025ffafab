#include "compile/assemble.h"

#include <ctype.h>
#include <errno.h>
#include <nvPTXCompiler.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"

/* The letter after the number in `.target sm_90a`, or NUL. Such PTX is for one architecture (a) or
 * family (f) only, and the machine code must be, too. */
static char target_suffix(const char *ptx, size_t len)
{
	static const char directive[] = ".target";
	const char *at = memmem(ptx, len, directive, sizeof(directive) - 1);
	const char *end = ptx + len;

	if (!at)
		return '\0';
	at += sizeof(directive) - 1;
	while (at < end && isspace((unsigned char)*at))
		at++;
	if (end - at < 3 || memcmp(at, "sm_", 3) != 0)
		return '\0';
	for (at += 3; at < end && isdigit((unsigned char)*at);)
		at++;
	return at < end && (*at == 'a' || *at == 'f') ? *at : '\0';
}

/* The compiler reports missing memory on stderr only; its result code is that of any failure. */
static bool lacked_memory(const char *said)
{
	return strstr(said, "Memory allocation failure");
}

/* Copies the first line of the compiler's error log. */
static void explain(nvPTXCompilerHandle compiler, struct weir_error *error)
{
	size_t size = 0;

	snprintf(error->message, sizeof(error->message), "the PTX compiler refuses it");
	if (nvPTXCompilerGetErrorLogSize(compiler, &size) != NVPTXCOMPILE_SUCCESS || size == 0)
		return;
	cleanup(freep) char *log = calloc(1, size + 1);
	if (!log || nvPTXCompilerGetErrorLog(compiler, log) != NVPTXCOMPILE_SUCCESS || !*log)
		return; /* NOLINT(clang-analyzer-unix.Malloc): cleanup() frees it */
	log[strcspn(log, "\n")] = '\0';
	snprintf(error->message, sizeof(error->message), "%s", log);
}

static nvPTXCompileResult take_program(nvPTXCompilerHandle compiler, void **image,
				       size_t *image_len)
{
	size_t size = 0;
	nvPTXCompileResult result = nvPTXCompilerGetCompiledProgramSize(compiler, &size);

	if (result != NVPTXCOMPILE_SUCCESS)
		return result;
	cleanup(freep) void *program = malloc(size);
	if (!program)
		return NVPTXCOMPILE_ERROR_OUT_OF_MEMORY;
	result = nvPTXCompilerGetCompiledProgram(compiler, program);
	if (result == NVPTXCOMPILE_SUCCESS) {
		*image = take(program);
		*image_len = size;
	}
	return result;
}

static nvPTXCompileResult compile(const char *ptx, size_t len, unsigned sm, void **image,
				  size_t *image_len, struct weir_error *error)
{
	char gpu[32], suffix[2] = {target_suffix(ptx, len), '\0'};
	const char *options[] = {gpu};
	nvPTXCompilerHandle compiler;

	snprintf(gpu, sizeof(gpu), "--gpu-name=sm_%u%s", sm, suffix);
	nvPTXCompileResult result = nvPTXCompilerCreate(&compiler, len, ptx);
	if (result != NVPTXCOMPILE_SUCCESS)
		return result;
	result = nvPTXCompilerCompile(compiler, countof(options), options);
	if (result == NVPTXCOMPILE_SUCCESS)
		result = take_program(compiler, image, image_len);
	if (result != NVPTXCOMPILE_SUCCESS)
		explain(compiler, error);
	nvPTXCompilerDestroy(&compiler);
	return result;
}

int assemble(void *data, const char *ptx, size_t len, unsigned sm, void **image, size_t *image_len,
	     struct weir_error *error)
{
	char said[1024] = "";
	FILE *ours = fmemopen(said, sizeof(said) - 1, "w"), *theirs = stderr;

	(void)data;
	*error = (struct weir_error){0};
	if (ours)
		stderr = ours;
	nvPTXCompileResult result = compile(ptx, len, sm, image, image_len, error);
	stderr = theirs;
	if (ours)
		fclose(ours);
	if (result == NVPTXCOMPILE_SUCCESS)
		return 0;
	if (result != NVPTXCOMPILE_ERROR_OUT_OF_MEMORY && !lacked_memory(said))
		return -EIO;
	snprintf(error->message, sizeof(error->message), "the PTX compiler lacks memory");
	return -ENOMEM;
}
