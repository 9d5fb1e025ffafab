#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <weir/base.h>

#define OPTIONS_MAX 32
#define GO_NS       200000 /* between looks for the go file */
#define HUGE_PAGE   ((size_t)2 << 20)

_Noreturn void workload_fail(const char *format, ...)
{
	va_list arguments;

	flockfile(stderr);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	funlockfile(stderr);
	/* Not exit(): another thread may be in the driver, whose destructors would run under it. */
	fflush(NULL);
	_exit(1);
}

_Noreturn void workload_fail_cuda(CUresult result, const char *call, const char *file, int line)
{
	const char *name = NULL;

	if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
		name = "unknown error";
	workload_fail("%s:%d: %s: %s (%d)", file, line, call, name, (int)result);
}

static void print_help(const char *summary, const struct workload_option *const *rows, size_t n)
{
	printf("%s: %s\n\n", program_invocation_short_name, summary);
	for (size_t i = 0; i < n; i++)
		printf("  --%-14s %s\n", rows[i]->name, rows[i]->help);
}

/* False: @text is no value of this type. */
static bool set_option(const struct workload_option *row, const char *text)
{
	char *end = NULL;

	errno = 0;
	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)row->value = true;
		return true;
	case OPTION_NUMBER:
		*(uint64_t *)row->value = strtoull(text, &end, 0);
		break;
	case OPTION_REAL:
		*(double *)row->value = strtod(text, &end);
		break;
	case OPTION_TEXT:
		*(const char **)row->value = text;
		return true;
	}
	return end != text && *end == '\0' && errno == 0 && *text != '-';
}

void workload_parse(struct workload *workload, int argc, char **argv, const char *summary,
		    const struct workload_option *own)
{
	const struct workload_option common[] = {
		{"seconds", OPTION_REAL, &workload->seconds, "stop after this time"},
		{"iterations", OPTION_NUMBER, &workload->iterations, "length of a kernel or count"},
		{"size", OPTION_NUMBER, &workload->size, "elements, rows or blocks"},
		{"seed", OPTION_NUMBER, &workload->seed, "of everything random"},
		{"ready-file", OPTION_TEXT, &workload->ready_file, "created once at work"},
		{"stop-file", OPTION_TEXT, &workload->stop_file, "stop when it appears"},
		{"go-file", OPTION_TEXT, &workload->go_file, "ready, it waits for this file"},
		{"gpu", OPTION_FLAG, &workload->gpu, "default sizes for a real GPU"},
	};
	const struct workload_option *rows[OPTIONS_MAX];
	struct option options[OPTIONS_MAX + 2] = {{"help", no_argument, NULL, 'h'}};
	size_t n = 0;
	int index, option;

	for (size_t i = 0; i < countof(common); i++)
		rows[n++] = &common[i];
	for (; own && own->name && n < OPTIONS_MAX; own++)
		rows[n++] = own;
	for (size_t i = 0; i < n; i++)
		options[i + 1] = (struct option){
			rows[i]->name,
			rows[i]->type == OPTION_FLAG ? no_argument : required_argument, NULL, 0};

	while ((option = getopt_long(argc, argv, "h", options, &index)) != -1) {
		if (option == 'h') {
			print_help(summary, rows, n);
			exit(0);
		}
		if (option != 0)
			exit(2);
		if (!set_option(rows[index - 1], optarg)) {
			fprintf(stderr, "%s: --%s: not a number: '%s'\n",
				program_invocation_short_name, rows[index - 1]->name, optarg);
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument '%s'\n", program_invocation_short_name,
			argv[optind]);
		exit(2);
	}
}

void *workload_alloc(size_t size)
{
	bool is_large = size >= HUGE_PAGE;
	void *memory = is_large ? aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) & -HUGE_PAGE)
				: malloc(size ? size : 1);

	if (!memory)
		workload_fail("out of memory");
	if (is_large) /* small pages would cost more than their use */
		madvise(memory, size, MADV_HUGEPAGE);
	return memory;
}

void workload_open(struct workload *workload, const char *ptx)
{
	CU(cuInit(0));
	CU(cuDeviceGet(&workload->device, 0));
	CU(cuDeviceGetAttribute(&workload->sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
				workload->device));
	CU(cuDevicePrimaryCtxRetain(&workload->context, workload->device));
	CU(cuCtxSetCurrent(workload->context));
	if (ptx)
		CU(cuModuleLoadData(&workload->module, ptx));
}

void workload_close(struct workload *workload)
{
	if (workload->module)
		CU(cuModuleUnload(workload->module));
	CU(cuDevicePrimaryCtxRelease(workload->device));
}

void workload_upload(CUdeviceptr to, const void *from, size_t bytes)
{
	CU(cuMemcpyHtoD(to, from, bytes));
	CU(cuCtxSynchronize());
}

CUfunction workload_kernel(const struct workload *workload, const char *name)
{
	CUfunction function;

	CU(cuModuleGetFunction(&function, workload->module, name));
	return function;
}

static void create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		workload_fail("%s: %s", path, strerror(errno));
	close(fd);
}

void workload_ready(struct workload *workload)
{
	if (workload->ready_file)
		create(workload->ready_file);
	while (workload->go_file && access(workload->go_file, F_OK) < 0)
		sleep_until_ns(now_ns() + GO_NS);
	workload->started = now_ns();
}

bool workload_stopped(const struct workload *workload)
{
	if (workload->seconds > 0 &&
	    (double)(now_ns() - workload->started) >= workload->seconds * 1e9)
		return true;
	return workload->stop_file && access(workload->stop_file, F_OK) == 0;
}

uint64_t workload_pick(const struct workload *workload, uint64_t given, uint64_t simulated,
		       uint64_t gpu)
{
	if (given)
		return given;
	return workload->gpu ? gpu : simulated;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_until_ns(uint64_t when)
{
	struct timespec until = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t random_below(struct random *random, uint32_t limit)
{
	return (uint32_t)((random_next(random) >> 32) * limit >> 32);
}
