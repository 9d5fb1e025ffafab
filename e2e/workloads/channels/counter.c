/* One kernel that never ends and never leaves: a thread adds 1 to a word of a file, which others
 * may map to see whether it runs. With --disobey it does not want to be held:
 *
 *   gates    launches short kernels by the driver's own function, which no gate is before
 *   hold     clears its hold word again and again, and launches short kernels instead of a long one
 *   stop     lets its channel group go on again and again, with --pause-us between
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weir/channel-group.h"
#include "weir/protocol.h"

#include "own-groups.h"
#include "spin.h"

#define PAGE        4096u
#define MAPPED_PATH 400
#define STRING_(x)  #x
#define STRING(x)   STRING_(x)

typedef __typeof__(cuLaunchKernel) launch_function;

/* Until the second word is not 0; at most @rounds times. */
static const char counter_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry count(.param .u64 words, .param .u32 rounds)\n{\n"
	".reg .u64 %at;\n.reg .u32 %n, %stop, %left;\n.reg .pred %go;\n"
	"ld.param.u64 %at, [words];\n"
	"ld.param.u32 %left, [rounds];\n"
	"ld.volatile.global.u32 %n, [%at];\n"
	"AGAIN:\n"
	"add.u32 %n, %n, 1;\n"
	"st.volatile.global.u32 [%at], %n;\n"
	"ld.volatile.global.u32 %stop, [%at+4];\n"
	"setp.ne.u32 %go, %stop, 0;\n"
	"@%go ret;\n"
	"sub.u32 %left, %left, 1;\n"
	"setp.ne.u32 %go, %left, 0;\n"
	"@%go bra AGAIN;\n"
	"ret;\n}\n";

static void *fight_stops(void *argument)
{
	uint64_t pause_us = *(const uint64_t *)argument;

	for (;;) {
		channel_group_stop(own_groups.fd, &own_groups.compute, false);
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	return NULL;
}

/* The first mapping of this process whose line has @words: its address, and its file in @path of
 * MAPPED_PATH + 1 bytes. 0: there is none. */
static uintptr_t find_mapped(const char *words, char *path)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	const char *form = "%lx-%*s %*s %*s %*s %*s %" STRING(MAPPED_PATH) "s";
	char line[MAPPED_PATH + 100];
	unsigned long at = 0;

	while (maps && !at && fgets(line, sizeof(line), maps))
		if (strstr(line, words) && sscanf(line, form, &at, path) != 2)
			at = 0;
	if (maps)
		fclose(maps);
	return at;
}

/* The control page that libweir has mapped; NULL: there is none. */
static struct weir_control_page *find_control(void)
{
	char path[MAPPED_PATH + 1];

	return (struct weir_control_page *)find_mapped("weir-control", path);
}

/* The driver's own function, where libweir is preloaded, too. */
static launch_function *find_launch(void)
{
	char path[MAPPED_PATH + 1];
	void *driver =
		find_mapped("/libcuda.so", path) ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
	void *found = driver ? dlsym(driver, "cuLaunchKernel") : NULL;

	if (!found)
		workload_fail("no cuLaunchKernel in the driver");
	return (launch_function *)found;
}

static void *clear_holds(void *control)
{
	for (;;)
		atomic_store(&((struct weir_control_page *)control)->hold, 0);
	return NULL;
}

static void start_thread(void *(*body)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, argument) != 0)
		workload_fail("no thread");
	pthread_detach(thread);
}

static volatile uint32_t *map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *page = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, PAGE) == 0)
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		workload_fail("cannot map %s", path);
	close(fd);
	memset(page, 0, PAGE);
	return page;
}

static void launch(launch_function *by, CUfunction function, CUdeviceptr words, uint32_t rounds)
{
	void *params[] = {&words, &rounds};

	CU(by(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

/* Short kernels, behind each other. The first one makes the process a client of libweir's. */
static void run_short(const struct workload *w, launch_function *by, CUfunction function,
		      CUdeviceptr words, bool clears_holds)
{
	struct weir_control_page *control = NULL;

	launch(cuLaunchKernel, function, words, 1);
	while (!workload_stopped(w)) {
		launch(by, function, words, 200);
		CU(cuCtxSynchronize());
		if (clears_holds && !control && (control = find_control()))
			start_thread(clear_holds, control);
	}
}

static void run_long(const struct workload *w, CUfunction function, CUdeviceptr words,
		     volatile uint32_t *page)
{
	launch(cuLaunchKernel, function, words, UINT32_MAX);
	while (!workload_stopped(w))
		usleep(1000);
	page[1] = 1;
}

int main(int argc, char **argv)
{
	const char *file = NULL, *disobey = "";
	static uint64_t pause_us;
	const struct workload_option own[] = {
		{"file", OPTION_TEXT, &file, "to count in"},
		{"disobey", OPTION_TEXT, &disobey, "gates, hold, or stop"},
		{"pause-us", OPTION_NUMBER, &pause_us, "between two calls that let it go on"},
		{0},
	};
	struct workload w = {.seed = 1};
	CUdeviceptr words;

	workload_parse(&w, argc, argv, "counts in a file as long as it runs on the GPU", own);
	if (!file)
		workload_fail("--file is missing");
	volatile uint32_t *page = map_file(file);
	workload_open(&w, counter_ptx);
	CUfunction function = workload_kernel(&w, "count");
	CU(cuMemHostRegister((void *)page, PAGE, CU_MEMHOSTREGISTER_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&words, (void *)page, 0));
	if (strcmp(disobey, "stop") == 0)
		start_thread(fight_stops, &pause_us);
	workload_ready(&w);
	if (strcmp(disobey, "gates") == 0)
		run_short(&w, find_launch(), function, words, false);
	else if (strcmp(disobey, "hold") == 0)
		run_short(&w, cuLaunchKernel, function, words, true);
	else
		run_long(&w, function, words, page);
	printf("{\"program\": \"counter\", \"count\": %u}\n", page[0]);
	fflush(stdout);
	_exit(0); /* the threads use what an orderly end would take away */
}
