#include "metrics/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "common/metric.h"
#include "common/process.h"

#include "weir/base.h"
#include "weir/file.h"

static uint64_t cpu_time(const void *object)
{
	(void)object;
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t resident_bytes(const void *object)
{
	char text[128];
	unsigned long pages;

	(void)object;
	file_read(AT_FDCWD, "/proc/self/statm", text, sizeof(text));
	return sscanf(text, "%*d %lu", &pages) == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
						    : METRIC_NONE;
}

static uint64_t open_descriptors(const void *object)
{
	DIR *folder = opendir("/proc/self/fd");
	uint64_t n = 0;

	(void)object;
	if (!folder)
		return METRIC_NONE;
	for (struct dirent *entry; (entry = readdir(folder));)
		n += entry->d_name[0] != '.';
	closedir(folder);
	return n - 1; /* without this folder's own */
}

static uint64_t max_descriptors(const void *object)
{
	struct rlimit limit;

	(void)object;
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : METRIC_NONE;
}

/* In ns since 1970. Computed once: the clock may be set, and two readings differ a little. */
static uint64_t start_time(const void *object)
{
	static uint64_t start;

	(void)object;
	if (!start)
		start = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
			process_started(getpid()) * NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	return start;
}

static const struct metric process_metrics[] = {
	{"process_cpu_seconds_total", "CPU time of the agent, without weir-compile.", METRIC_NS,
	 .get = cpu_time},
	{"process_resident_memory_bytes", "Resident memory of the agent.", .get = resident_bytes},
	{"process_open_fds", "Open file descriptors.", .get = open_descriptors},
	{"process_max_fds", "Limit of open file descriptors.", .get = max_descriptors},
	{"process_start_time_seconds", "When the agent started, in seconds since 1970.", METRIC_NS,
	 .get = start_time},
	{0},
};

void process_metrics_write(FILE *out)
{
	metric_write_table(out, process_metrics, METRIC_OBJECT(process_metrics));
}
